"""Optimizers of PyTorch that do not load its compiler.

`torch.optim` imports `torch._dynamo` when an optimizer is created and again in each step. That is 800 modules and
about one CPU second, a third of the time from the start of a job to its first step, for a compiler that never sees
the optimizer: `compile` compiles the model alone. The numbers of a step are those of PyTorch.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.optim import Optimizer

for _name in ("add_param_group", "zero_grad", "state_dict", "load_state_dict"):
    _method: Any = inspect.unwrap(getattr(Optimizer, _name))
    _method.__dynamo_disable = _method  # where torch._disable_dynamo keeps the function that it calls instead

_adamw_step: Any = inspect.unwrap(torch.optim.AdamW.step)
_sgd_step: Any = inspect.unwrap(torch.optim.SGD.step)


class AdamW(torch.optim.AdamW):
    """`torch.optim.AdamW`."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        return _adamw_step(self, closure)


class SGD(torch.optim.SGD):
    """`torch.optim.SGD`."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        return _sgd_step(self, closure)
