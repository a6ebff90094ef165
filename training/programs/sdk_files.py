"""The SDK as the files of a package `aip`: put beside the code of jobs, and part of the client's wheel.

Its modules share the run contract with the presets; in the package they lie side by side, so it needs nothing of the
platform.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

PACKAGE = "aip"
_HOME = Path(__file__).parent / "sdk"
_PRESETS = Path(__file__).parents[1] / "presets"
SHARED = ("run.py", "checkpoints.py", "profile_facts.py", "profile_spans.py")  # standard library only


@cache
def modules() -> dict[str, bytes]:
    """Return the modules by their path, "aip/run.py" and so on."""
    paths = [*sorted(_HOME.glob("*.py")), *(_PRESETS / name for name in SHARED)]
    return {f"{PACKAGE}/{path.name}": _flat(path.read_bytes()) for path in paths}


def write(folder: Path) -> None:
    """Write the package into a folder."""
    (folder / PACKAGE).mkdir()
    for name, code in modules().items():
        (folder / name).write_bytes(code)


def _flat(code: bytes) -> bytes:
    return code.replace(b"from training.presets import", b"from . import").replace(b"from training.presets.", b"from .")
