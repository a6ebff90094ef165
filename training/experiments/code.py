"""The code of two runs beside each other: files of snapshots, command lines and variables, as unified differences."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.files import OutsideRoot, open_beneath, walk_beneath
from aiplatform.lib.line_diff import Budget, unified_rows
from aiplatform.lib.secret_names import mask_params
from training.experiments.models import Run
from training.programs.models import CodeSnapshot

MAX_FILES, LONGEST, MAX_LINES = 500, 200_000, 1500
MAX_BYTES = 8 << 20  # of the code of all compared runs


@dataclass(slots=True)
class Limits:
    """Work left for the comparisons of one page."""

    steps: Budget = field(default_factory=Budget)
    bytes: int = field(default_factory=lambda: MAX_BYTES)


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
    """Return whether the run executed custom code or a command, rather than a preset."""
    return _request(run) is not None


def compare(runs: Sequence[Run]) -> list[tuple[Run, list[FileDifference]]]:
    """Compare the code of the first run with that of each other one; all comparisons share one limit of work."""
    limits = Limits()
    before = dict(_texts(runs[0], limits)) if len(runs) > 1 else {}
    return [(run, _differences(before, dict(_texts(run, limits)), limits)) for run in runs[1:]]


def differences(first: Run, second: Run) -> list[FileDifference]:
    """What the second run's code differs in from the first one's; nothing where neither has code of its own."""
    return compare([first, second])[0][1]


def _differences(
    mine: Mapping[str, bytes | None], theirs: Mapping[str, bytes | None], limits: Limits
) -> list[FileDifference]:
    differences: list[FileDifference] = []
    left = MAX_LINES
    for path in sorted({*mine, *theirs}):
        before, after = mine.get(path, b""), theirs.get(path, b"")
        if before is None or after is None:
            message = _("Not compared: only the first %(most)s MiB of code are read.") % {"most": MAX_BYTES >> 20}
            return [*differences, FileDifference(path, [("@", message)], cut=True)]
        if before == after:
            continue
        if b"\x00" in before or b"\x00" in after:
            differences.append(FileDifference(path, [], binary=True))
            continue
        rows = lines(before.decode(errors="replace"), after.decode(errors="replace"), limits.steps)
        differences.append(FileDifference(path, rows[:left], cut=len(rows) > left))
        left = max(0, left - len(rows))
    return differences


def lines(before: str, after: str, budget: Budget | None = None) -> list[tuple[str, str]]:
    """Return the differences of two texts in the form of `FileDifference`; [] if they are equal.

    Args:
        budget: shared with other comparisons; once it is used up, changed lines are shown as replaced, and a header
            says so.
    """
    budget = budget or Budget()
    rows = unified_rows(before, after, budget)
    if rows and budget.is_exceeded:
        message = _("Too many changes to compare line by line: everything between the first and the last is replaced.")
        rows.insert(0, ("@", message))
    return rows


def _request(run: Run) -> Any:
    """The training or command with own code, of a run that is one."""
    training = run.training
    if training is not None:
        return training if training.is_own_code else None
    return getattr(run.job, "command", None)


def _texts(run: Run, limits: Limits) -> Iterator[tuple[str, bytes | None]]:
    request = _request(run)
    if request is None:
        return
    for name in ("script", "worker_script", "start_file", "arguments"):
        text = getattr(request, name, "")
        if text:
            yield f"<{name}>", text.encode()
    variables: Mapping[str, Any] = mask_params(request.variables)
    if variables:
        yield "<variables>", "".join(f"{name}={value}\n" for name, value in sorted(variables.items())).encode()
    if request.code is not None:
        yield from _files(request.code, limits)


def _files(code: CodeSnapshot, limits: Limits) -> Iterator[tuple[str, bytes | None]]:
    """Yield the files in the order of their names; None for the content of those beyond the limit."""
    try:
        for number, path in enumerate(walk_beneath(code.path, lenient=True)):
            if number >= MAX_FILES:
                return
            if limits.bytes <= 0:
                yield path, None
                continue
            with os.fdopen(open_beneath(code.path, path), "rb") as file:
                content = file.read(LONGEST)
            limits.bytes -= len(content)
            yield path, content
    except (OSError, OutsideRoot):
        return
