"""Working directory of a job with custom code: the code, the SDK next to it, and the folder of its outputs."""

from __future__ import annotations

import os
import shutil

from training.programs import sdk_files
from training.programs.models import CodeSnapshot
from workers.core.runs import RunDir

LITTER = shutil.ignore_patterns("__pycache__", "*.pyc")


def populate(run: RunDir, code: CodeSnapshot | None, *, output_path: str = "") -> None:
    """Fill code/ with the snapshot; safe to call again.

    Args:
        code: None begins with an empty folder.
        output_path: the folder in the code that becomes outputs/, "" for none.
    """
    run.code.mkdir(parents=True, exist_ok=True)
    if code is not None:
        shutil.copytree(code.path, run.code, ignore=LITTER, dirs_exist_ok=True, symlinks=True)
    _add_sdk(run)
    _link_outputs(run, output_path)


def _add_sdk(run: RunDir) -> None:
    """Write the SDK next to the code, unless the code has a module `aip`."""
    package = run.code / sdk_files.PACKAGE
    if package.exists() or (run.code / f"{sdk_files.PACKAGE}.py").exists():
        return
    sdk_files.write(run.code)


def _link_outputs(run: RunDir, output_path: str) -> None:
    """Let the folder a script writes to be the job's outputs."""
    if not output_path:
        return
    run.outputs.mkdir(parents=True, exist_ok=True)
    link = run.code / output_path
    if link.is_symlink():
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir():  # what the code brings in this folder is part of the outputs
        shutil.copytree(link, run.outputs, dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(link)
    link.symlink_to(os.path.relpath(run.outputs, link.parent))
