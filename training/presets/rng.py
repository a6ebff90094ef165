"""Save and restore the global random generators of Python, numpy and torch.

The trainer draws nothing from them; a model may.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def state() -> dict[str, Any]:
    """Return the state of this process's generators, in a form torch.load reads without running code."""
    name, keys, position, has_gauss, gauss = np.random.get_state()
    version, numbers, spare = random.getstate()
    return {
        "python": [version, list(numbers), spare],
        "numpy": [str(name), torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, gauss],
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
    }


def restore(state: dict[str, Any]) -> None:
    """Set the generators to a saved state."""
    version, numbers, spare = state["python"]
    random.setstate((version, tuple(numbers), spare))
    name, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((name, keys.cpu().numpy().astype(np.uint32), position, has_gauss, gauss))
    torch.set_rng_state(state["torch"].cpu())
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"].cpu())
