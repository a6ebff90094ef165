"""The code of two runs beside each other: files of snapshots, command lines and variables, as unified differences."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aiplatform.lib.files import OutsideRoot, open_beneath, walk_beneath
from aiplatform.lib.secret_names import hidden
from training.experiments.models import Run
from training.models import CodeSnapshot

MOST_FILES, LONGEST, MOST_LINES = 500, 200_000, 1500
AROUND = 3  # lines around a change


@dataclass(frozen=True)
class FileDifference:
    """What one file differs in.

    Attributes:
        lines: (sign, text): "+", "-", " ", or "@" where lines are left out.
        cut: whether there is more than is shown.
        binary: it differs, and is no text.
    """

    path: str
    lines: list[tuple[str, str]]
    cut: bool = False
    binary: bool = False


def has_code(run: Run) -> bool:
    """Whether it ran somebody's own code or a command, rather than a preset."""
    return _request(run) is not None


def differences(first: Run, second: Run) -> list[FileDifference]:
    """What the second run's code differs in from the first one's; nothing where neither has code of its own."""
    mine, theirs = dict(_texts(first)), dict(_texts(second))
    found, left = [], MOST_LINES
    for path in sorted({*mine, *theirs}):
        before, after = mine.get(path, b""), theirs.get(path, b"")
        if before == after:
            continue
        if b"\x00" in before or b"\x00" in after:
            found.append(FileDifference(path, [], binary=True))
            continue
        rows = lines(before.decode(errors="replace"), after.decode(errors="replace"))
        found.append(FileDifference(path, rows[:left], cut=len(rows) > left))
        left = max(0, left - len(rows))
    return found


def lines(before: str, after: str) -> list[tuple[str, str]]:
    """What two texts differ in, as `FileDifference` has it; nothing of equal ones."""
    old, new = before.splitlines(), after.splitlines()
    found: list[tuple[str, str]] = []
    for line in list(difflib.unified_diff(old, new, lineterm="", n=AROUND))[2:]:
        sign = line[:1] if line[:1] in "+-@" and line else " "
        found.append((sign, line if sign == "@" else line[1:]))
    return found


def _request(run: Run) -> Any:
    """The training or command with own code, of a run that is one."""
    training = run.training
    if training is not None:
        return training if training.is_own_code else None
    return getattr(run.job, "command", None)


def _texts(run: Run) -> Iterator[tuple[str, bytes]]:
    request = _request(run)
    if request is None:
        return
    for name in ("script", "worker_script", "start_file", "arguments"):
        text = getattr(request, name, "")
        if text:
            yield f"<{name}>", text.encode()
    variables: Mapping[str, Any] = hidden(request.variables)
    if variables:
        yield "<variables>", "".join(f"{name}={value}\n" for name, value in sorted(variables.items())).encode()
    if request.code is not None:
        yield from _files(request.code)


def _files(code: CodeSnapshot) -> Iterator[tuple[str, bytes]]:
    try:
        for number, path in enumerate(walk_beneath(code.path, lenient=True)):
            if number >= MOST_FILES:
                return
            with os.fdopen(open_beneath(code.path, path), "rb") as file:
                yield path, file.read(LONGEST)
    except (OSError, OutsideRoot):
        return
