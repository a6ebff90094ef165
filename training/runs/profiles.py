"""What a profile says: where the time of a step goes, and what would help. Read from what any program may write."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.errors import NotFound
from training.runs import images, previews
from training.runs.models import TrainingJob
from training.runs.profile_advice import SCRIPT, Advice, advice, number

PARTS = {  # of a step, in their order
    "wait": _("waiting for data"),
    "forward": _("forward"),
    "backward": _("backward"),
    "optimizer": _("optimizer"),
    "other": _("other"),
}
MAX_ROWS, MAX_BARS, LONGEST = 60, 400, 120
TIMELINE_WIDTH_PX = 960.0  # of the drawing of a time line
STEPS_DRAWN = 4
MAX_NAMED = 12
LOOP, ANY_LOOP = (  # lines for a script of one's own
    """\
from aip import profile

for batch in profile(loader, steps=10, skip=5):
    ...
""",
    """\
from aip import profile

with profile(steps=10, skip=5) as profiling:
    while learning:
        with profiling.part("forward"):
            ...
        profiling.step()
""",
)


class NoProfile(NotFound, code="no_profile"): ...


@dataclass(frozen=True)
class Operation:
    """One kind of operation; calls and milliseconds of one step. `share`: of all operations' own time."""

    name: str
    calls: float
    self_cpu_ms: float
    cpu_ms: float
    self_device_ms: float
    share: float


@dataclass(frozen=True)
class Bar:
    """A part of a step on the time line, in the units of the drawing."""

    part: str
    row: int
    x: float
    width: float
    ms: float


@dataclass(frozen=True)
class Profile:
    """A profile as it is shown; times in milliseconds of one step.

    Attributes:
        own: a script of one's own wrote it, and knows some parts only; `shares` has those and the rest.
        profiled_step_ms: how long a step took while it was watched; None where only a clock watched.
        batch_size: 0 where it is not known; `precision` is "" then.
        named: parts that the script named as it liked, which are some of the rest.
    """

    attempt: int
    own: bool
    steps: int
    step_ms: float
    profiled_step_ms: float | None
    device: str
    on_card: bool
    threads: int
    batch_size: int
    precision: str
    shares: list[tuple[str, Any, float]]  # part, its words, 0..1
    untold: list[Any]  # words of the parts that nobody could tell
    named: list[tuple[str, float]]
    operations: list[Operation]
    of_operations: int
    bars: list[Bar]
    advice: list[Advice]
    memory_mib: float | None

    @property
    def rows(self) -> int:
        """Steps that are drawn."""
        return 1 + max((bar.row for bar in self.bars), default=-1)


def latest(training: TrainingJob, user: User) -> tuple[TrainingJob | None, Profile | None]:
    """The job that was to leave a profile of this training, and what it left.

    A script of one's own leaves it itself; of a preset it is the newest look that this person may see.
    """
    look = previews.latest_profile(training, user) if training.preset else training
    return look, read(look) if look else None


def require_profile(training: TrainingJob, user: User) -> Profile:
    """Return the newest profile of a training.

    Raises:
        NoProfile: there is none; the sentence says how one is made.
    """
    look, profile = latest(training, user)
    if profile is not None:
        return profile
    if not training.preset:
        message = _(
            "This script has no profile yet. Create one with `from aip import profile` and `for batch in "
            "profile(loader):` around its loop."
        )
        raise NoProfile(message)
    if look is None:
        raise NoProfile(_("This training has not been profiled. Profile some of its steps first."))
    raise NoProfile(_("The job that profiles this training has no results yet."), look=look.pk)


def read(look: TrainingJob) -> Profile | None:
    """Return the profile of the newest attempt of a job that has one; None without a valid one."""
    for attempt, facts in images.all_facts(look, "profile"):
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError, OverflowError):
            return parse(facts, attempt)
    return None


def parse(facts: Mapping[str, Any], attempt: int = 1) -> Profile:
    """Parse a profile written by a program.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: it is none.
    """
    shares = {part: min(max(number(facts["shares"].get(part, 0)), 0.0), 1.0) for part in PARTS}
    kind = str(facts["kind"])
    operations = _operations(facts["operations"], on_card=kind == "cuda")
    memory, watched_ms = facts.get("memory_mib"), facts["profiled_step_ms"]
    own = facts.get("source") == SCRIPT
    parts = [part for part in PARTS if not own or part == "other" or part in facts["known"]]
    return Profile(
        attempt=attempt,
        own=own,
        steps=int(number(facts["steps"])),
        step_ms=number(facts["step_ms"]),
        profiled_step_ms=None if own and watched_ms is None else number(watched_ms),
        device=str(facts["device"])[:LONGEST],
        on_card=kind == "cuda",
        threads=int(number(facts["threads"])),
        batch_size=int(number(facts["batch_size"])),
        precision=str(facts["precision"])[:20],
        shares=[(part, PARTS[part], shares[part]) for part in parts],
        untold=[label for part, label in PARTS.items() if part not in parts],
        named=_named(facts["named"]) if own else [],
        operations=operations,
        of_operations=int(number(facts["of_operations"])),
        bars=_bars(facts["timeline"]),
        advice=advice(facts, shares, [(operation.name, operation.share) for operation in operations]),
        memory_mib=None if memory is None else number(memory),
    )


def _named(shares: Any) -> list[tuple[str, float]]:
    rows = [(str(name)[:LONGEST], min(max(number(share), 0.0), 1.0)) for name, share in shares.items()]
    return sorted(rows, key=lambda row: -row[1])[:MAX_NAMED]


def _operations(rows: Any, *, on_card: bool) -> list[Operation]:
    if not isinstance(rows, list):
        raise TypeError("operations")
    operations = [
        Operation(
            name=str(row["name"])[:LONGEST],
            calls=number(row["calls"]),
            self_cpu_ms=number(row["self_cpu_ms"]),
            cpu_ms=number(row["cpu_ms"]),
            self_device_ms=number(row["self_device_ms"]),
            share=0.0,
        )
        for row in rows[:MAX_ROWS]
    ]

    def own(operation: Operation) -> float:
        return operation.self_device_ms if on_card else operation.self_cpu_ms

    total_ms = sum(map(own, operations)) or 1.0
    return sorted(
        (replace(operation, share=round(own(operation) / total_ms, 4)) for operation in operations),
        key=lambda operation: -own(operation),
    )


def _bars(line: Any) -> list[Bar]:
    """Return the bars of the first steps, one below the other, each from its own start."""
    rows = [
        (int(number(entry["step"])), str(entry["part"]), number(entry["begin_ms"]), number(entry["ms"]))
        for entry in line[:MAX_BARS]
        if entry["part"] in PARTS and int(number(entry["step"])) in range(STEPS_DRAWN)
    ]
    begins = {step: min(begin for own, _part, begin, _ms in rows if own == step) for step, *_rest in rows}
    longest = max((begin + ms - begins[step] for step, _part, begin, ms in rows), default=0.0) or 1.0
    scale = TIMELINE_WIDTH_PX / longest
    return [
        Bar(part, step, round((begin - begins[step]) * scale, 2), round(max(ms * scale, 0.5), 2), ms)
        for step, part, begin, ms in rows
    ]
