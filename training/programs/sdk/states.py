"""Checkpoints of a script: written whole or not at all, found again when the job continues.

The platform's actions suspend, move and restore a job by its newest checkpoint. A checkpoint is a folder
`step-000123` below `AIP_CHECKPOINT_DIR`; the two newest are kept, and the best where `metric` is given.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Union

from training.presets import checkpoints
from training.presets.run import current, log_line

from . import values

Content = Union[Callable[[Path], Any], Mapping[str, Any], str, "os.PathLike[str]"]
MAX_WAIT_S = 1800.0  # of the ranks for each other
POLL_S = 0.05
_calls = itertools.count(1)  # of sharded checkpoints by this process


def checkpoint(step: Any, content: Content, metric: Any = None, *, sharded: bool = False) -> Path | None:
    """Keep a state of the training; return its folder, None where it was not kept.

        checkpoint(step, {"model.pt": model.state_dict(), "notes.txt": "…"})
        checkpoint(step, "runs/last")                                  # copies a file or a folder
        checkpoint(step, lambda folder: model.save(folder / "model"))  # or writes into the folder it gets
        checkpoint(step, accelerator.save_state, sharded=True)         # each rank writes its part

    Args:
        step: int, NumPy integer or tensor with one element.
        content: a function that writes files and folders into the folder it is given; or name → value, where bytes
            and texts are written as they are, a Path is copied, and anything else is saved by `torch.save`, where
            torch is imported; or the path of a file or folder that is copied.
        metric: figure of merit, higher is better; the best checkpoint is kept besides the two newest.
        sharded: all ranks call it (accelerate, DeepSpeed, torch.distributed.checkpoint) and write into one folder,
            which all nodes must reach; it becomes visible once all have written. Otherwise rank 0 writes and all
            other ranks return at once.

    Never raises: an error of `content` or of the disk is a line of the log, and the newest checkpoint before stays.
    """
    rank, size = _rank()
    at_step, merit = values.step_of(step), None
    with contextlib.suppress(TypeError, ValueError, OverflowError, RuntimeError):
        merit = None if metric is None else values.number(metric)
    if at_step is None or at_step < 0:
        log_line(f"aip.checkpoint: {step!r:.80} is not a step; nothing was kept")
        return None
    if merit is not None and merit != merit:
        merit = None  # NaN: never the best
    fill = _filling(content)
    root = current().checkpoint_dir
    try:
        if sharded and size > 1:
            return _sharded(root, at_step, fill, merit, rank, size)
        if rank:
            return None
        return checkpoints.write(root, step=at_step, fill=fill, metric=merit, best=_is_best(root, at_step, merit))
    except Exception as error:  # noqa: BLE001  whatever fails, the training goes on
        log_line(f"aip.checkpoint: step {at_step} was not kept, {type(error).__name__}: {error!s:.300}")
        return None


def restored() -> Path | None:
    """Return the folder of the newest complete checkpoint to continue from, None to start from the beginning.

    folder = restored()
    if folder:
        model.load_state_dict(torch.load(folder / "model.pt"))
    """
    run = current()
    try:
        return checkpoints.newest(run.resume_from, run.checkpoint_dir)
    except OSError as error:
        log_line(f"aip.restored: {error}")
        return None


def _rank() -> tuple[int, int]:
    """Return rank and number of ranks, as launchers tell them in the environment."""
    for rank, size in (
        ("RANK", "WORLD_SIZE"),
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        ("PMI_RANK", "PMI_SIZE"),
    ):
        with contextlib.suppress(KeyError, ValueError):
            return int(os.environ[rank]), max(1, int(os.environ[size]))
    return 0, 1


def _filling(content: Content) -> Callable[[Path], Any]:
    if isinstance(content, Mapping):
        return lambda folder: _write_parts(folder, content)
    if callable(content):
        return content
    return lambda folder: _copy(Path(content), folder / Path(content).name)


def _write_parts(folder: Path, parts: Mapping[str, Any]) -> None:
    for name, value in parts.items():
        path = folder / name
        if folder not in path.resolve().parents and folder.resolve() not in path.resolve().parents:
            raise ValueError(f"{name!r} is outside of the checkpoint")
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(value, (bytes, bytearray, memoryview)):
            path.write_bytes(value)
        elif isinstance(value, str):
            path.write_text(value, encoding="utf-8")
        elif isinstance(value, os.PathLike):
            _copy(Path(value), path)
        elif "torch" in sys.modules:
            sys.modules["torch"].save(value, path)
        else:
            raise TypeError(f"{name!r} is no bytes, text or path; write it with a function instead")


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def _is_best(root: Path, step: int, metric: float | None) -> bool:
    """Return whether no kept checkpoint has a higher metric. Of equal ones the later counts."""
    if metric is None:
        return False
    best = checkpoints.meta(root / "best") if (root / "best").exists() else None
    before = (best or {}).get("metric")
    return not isinstance(before, (int, float)) or before <= metric or (best or {}).get("step") == step


def _sharded(
    root: Path, step: int, fill: Callable[[Path], Any], metric: float | None, rank: int, size: int
) -> Path | None:
    """Let all ranks write into one folder; rank 0 completes it once all others have left their mark."""
    attempt = os.environ.get("AIP_ATTEMPT", "1")
    restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    # the ranks call it equally often: their calls have one number, also where a step is kept twice
    shared = root / f"step-{step:06d}.{attempt}-{restart}-{next(_calls)}.tmp"
    marks = root / f".{shared.name}.ranks"
    final = root / f"step-{step:06d}"
    shared.mkdir(parents=True, exist_ok=True)
    marks.mkdir(exist_ok=True)
    error = ""
    try:
        fill(shared)
    except Exception as failed:  # noqa: BLE001  the other ranks have to hear of it
        error = f"{type(failed).__name__}: {failed!s:.300}"
    partial = marks / f".{rank}"
    partial.write_text(error, encoding="utf-8")
    partial.replace(marks / str(rank))
    deadline = time.monotonic() + MAX_WAIT_S
    if rank:
        while marks.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("rank 0 did not complete the checkpoint")
            time.sleep(POLL_S)
        return final if final.exists() else None
    try:
        while (missing := [each for each in range(size) if not (marks / str(each)).exists()]) != []:
            if time.monotonic() > deadline:
                raise TimeoutError(f"ranks {missing[:8]} did not write their part within {MAX_WAIT_S:.0f} s")
            time.sleep(POLL_S)
        errors = {each: text for each in range(size) if (text := (marks / str(each)).read_text(encoding="utf-8"))}
        if errors:
            raise RuntimeError("; ".join(f"rank {each}: {text}" for each, text in errors.items()))
        best = _is_best(root, step, metric)
        return checkpoints.complete(root, shared, step=step, metric=metric, best=best, extra={"ranks": size})
    finally:
        shutil.rmtree(shared, ignore_errors=True)
        for left in root.glob(".step-*.ranks"):  # by attempts that were killed
            if left != marks:
                shutil.rmtree(left, ignore_errors=True)
        shutil.rmtree(marks, ignore_errors=True)  # the last: it lets the other ranks go on
