"""From the start of a preset to its first step, and what its curve says of the first and the last one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import optimizers

pytestmark = pytest.mark.proof

QUICK = {"budget_minutes": 0, "eval_share": 0, "batch_size": 8, "checkpoint_minutes": 1000, "steps": 3}
#: Prints, in place of the last scores, whether the compiler was imported.
LEARNED = """
import sys
from presets import {module}, trainer
trainer.Trainer._finish = lambda *_, **__: print("compiler:", "torch._dynamo" in sys.modules) or 0
sys.exit({module}.main())
"""


@pytest.mark.parametrize("module", ["classify", "detect"])  # SGD and AdamW
def test_preset_learns_without_loading_the_compiler(tmp_path, module):
    make = versions.shades if module == "classify" else versions.squares
    job = Job(tmp_path / "run", make(tmp_path / "data"), module, QUICK)
    job.argv = [sys.executable, "-c", LEARNED.format(module=module)]

    code, log = job.run()

    assert code == 0, log
    assert "compiler: False" in log


def test_optimizers_of_presets_do_not_load_the_compiler_when_a_checkpoint_is_restored():
    program = """
import sys, torch
from training.presets import optimizers
for kind in (optimizers.AdamW, optimizers.SGD):
    layer = torch.nn.Linear(2, 1)
    optimizer = kind(layer.parameters(), lr=0.1)
    layer(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    optimizer.load_state_dict(optimizer.state_dict())
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )

    assert done.stdout.strip() == "False", done.stderr


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("AdamW", {"weight_decay": 0.1, "fused": True}),
        ("SGD", {"momentum": 0.9, "weight_decay": 0.1, "nesterov": True}),
    ],
)
def test_optimizer_of_presets_steps_as_that_of_torch(kind, options):
    def learn(optimizers_of) -> tuple[torch.Tensor, dict]:
        torch.manual_seed(0)
        layer, images = torch.nn.Linear(4, 3), torch.randn(8, 4)
        optimizer = getattr(optimizers_of, kind)(layer.parameters(), lr=0.05, **options)
        for _step in range(3):
            optimizer.zero_grad(set_to_none=True)
            layer(images).square().mean().backward()
            optimizer.step()
        return layer.weight.detach(), optimizer.state_dict()

    (ours, our_state), (theirs, their_state) = learn(optimizers), learn(torch.optim)

    assert torch.equal(ours, theirs)
    assert our_state["param_groups"] == their_state["param_groups"]
    assert all(
        torch.equal(value, their_state["state"][number][key])
        for number, state in our_state["state"].items()
        for key, value in state.items()
        if isinstance(value, torch.Tensor)
    )


def test_curve_of_a_short_training_has_its_first_and_its_last_step(tmp_path):
    job = Job(tmp_path / "run", versions.shades(tmp_path / "data"), "classify", {**QUICK, "net_width": 4})

    code, log = job.run()

    lines = [json.loads(line) for line in job.metrics.read_text().splitlines()]
    steps = [line["step"] for line in lines if "train/loss" in line]
    assert code == 0, log
    assert (steps[0], steps[-1]) == (1, 3)
    assert next(line for line in lines if "train/loss" in line)["phase"] == "learning"
