"""Program code in run directories: packages of the product that a job's program imports."""

from __future__ import annotations

import shutil
from pathlib import Path

import inference
from aiplatform.lib.errors import DomainError
from training.presets import cores, groups, tiling
from workers.core.runs import RunDir

PACKAGE = Path(inference.__file__).parent
DEVICE_KINDS = ("gpu", "cpu")  # what its programs compute on


class Vanished(DomainError, code="vanished"):
    """The model or the data was deleted before the job could start."""


def copy_code(run: RunDir, *packages: str) -> None:
    """Copy the packages into the run as `code/inference/…`, where they import each other by the same names.

    Args:
        packages: paths below `inference`, such as "kit" and "evaluation/evaluator"; none imports the platform.
    """
    home = run.code / PACKAGE.name
    for package in packages:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PACKAGE / package, home / package, dirs_exist_ok=True, ignore=ignore)
        for above in [*Path(package).parents]:
            shutil.copyfile(PACKAGE / above / "__init__.py", home / above / "__init__.py")
    _copy_presets(run)


def _copy_presets(run: RunDir) -> None:
    """Copy what programs share with presets into the run as `code/training/presets`: tiles, busy cores, groups."""
    source = Path(tiling.__file__).parent
    target = run.code / Path(*tiling.__name__.split("."))
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    for module in (cores.__file__, groups.__file__):
        shutil.copy(module, target.parent)
    for above in (target.parent, target.parent.parent):
        (above / "__init__.py").touch()
