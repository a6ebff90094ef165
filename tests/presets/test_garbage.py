"""Imports of a job make hundreds of thousands of objects, none of them garbage: looking among them is left out."""

import subprocess
import sys
from pathlib import Path

import training.presets

JOB = """
import gc, presets.run
print(gc.isenabled())
with presets.run.refusals_without_traceback():
    print(gc.isenabled(), gc.get_freeze_count() > 1000)
"""


def test_preset_looks_for_garbage_where_its_work_begins_and_never_among_its_imports():
    done = subprocess.run(
        [sys.executable, "-c", JOB], cwd=Path(training.presets.__file__).parent.parent,
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.stdout.split() == ["False", "True", "True"], done.stderr
