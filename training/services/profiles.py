"""What a profile says: where the time of a step goes, and what would help. Read from what any program may write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.numbers import finite
from training.models import TrainingJob
from training.services import pictures

PARTS = {  # of a step, in their order
    "wait": _("waiting for data"),
    "forward": _("forward"),
    "backward": _("backward"),
    "optimizer": _("optimizer"),
    "other": _("the rest"),
}
MOST_ROWS, MOST_BARS, LONGEST = 60, 400, 120
WIDE = 960.0  # of the drawing of a time line
STEPS_DRAWN = 4

WAITS, MANY_KERNELS, IDLE, COPIES, FLOAT32, ONE_OPERATION, OPTIMIZER = (
    "waits", "many_kernels", "idle", "copies", "float32", "one_operation", "optimizer",
)  # fmt: skip
ADVICE = {
    WAITS: _(
        "%(share)s of a step waits for the next batch. Give the job more processor cores, or choose smaller images; "
        "from the second pass on the cached ones come faster."
    ),
    MANY_KERNELS: _(
        "The card gets %(count)s small pieces of work a step, %(us)s µs each: starting them takes longer than doing "
        "them. A larger batch_size or compile gives it fewer and larger ones; on a shared card MPS lets several jobs "
        "fill it."
    ),
    IDLE: _(
        "The card computes for %(share)s of a step and waits for the processor the rest. A larger batch_size fills it."
    ),
    COPIES: _(
        "%(share)s of the time goes into copying and converting. Keep data in the form in which it is computed with."
    ),
    FLOAT32: _("It computes in 32 bits. amp lets a card use its matrix units in bfloat16, several times as fast."),
    ONE_OPERATION: _(
        "%(share)s of the time goes into %(name)s alone: a smaller network or smaller images help more than anything "
        "else."
    ),
    OPTIMIZER: _("%(share)s of a step goes into the optimizer: with a larger batch_size it comes less often."),
}
COPYING = ("copy", "memcpy", "_to_copy", "contiguous", "clone")
SMALL_US, MANY = 25.0, 150


@dataclass(frozen=True)
class Advice:
    """What would help, as a code and facts; `text` says it."""

    code: str
    facts: Mapping[str, Any]

    @property
    def text(self) -> str:
        return str(ADVICE[self.code]) % self.facts


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
    """A profile as it is shown; times in milliseconds of one step."""

    attempt: int
    steps: int
    step_ms: float
    profiled_step_ms: float
    device: str
    on_card: bool
    threads: int
    batch_size: int
    precision: str
    shares: list[tuple[str, Any, float]]  # part, its words, 0..1
    operations: list[Operation]
    of_operations: int
    bars: list[Bar]
    advice: list[Advice]
    memory_mib: float | None

    @property
    def rows(self) -> int:
        """Steps that are drawn."""
        return 1 + max((bar.row for bar in self.bars), default=-1)


def read(look: TrainingJob) -> Profile | None:
    """The profile a look left; None while there is none, and of what is none."""
    attempt, about = pictures.facts(look, "profile")
    if not attempt:
        return None
    try:
        return of(about, attempt)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def of(about: Mapping[str, Any], attempt: int = 1) -> Profile:
    """A profile from what a program wrote.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: it is none.
    """
    shares = {part: min(max(_number(about["shares"].get(part, 0)), 0.0), 1.0) for part in PARTS}
    kind = str(about["kind"])
    operations = _operations(about["operations"], on_card=kind == "cuda")
    memory = about.get("memory_mib")
    return Profile(
        attempt=attempt,
        steps=int(_number(about["steps"])),
        step_ms=_number(about["step_ms"]),
        profiled_step_ms=_number(about["profiled_step_ms"]),
        device=str(about["device"])[:LONGEST],
        on_card=kind == "cuda",
        threads=int(_number(about["threads"])),
        batch_size=int(_number(about["batch_size"])),
        precision=str(about["precision"])[:20],
        shares=[(part, PARTS[part], shares[part]) for part in PARTS],
        operations=operations,
        of_operations=int(_number(about["of_operations"])),
        bars=_bars(about["timeline"]),
        advice=advice(about, shares, operations),
        memory_mib=None if memory is None else _number(memory),
    )


def _number(value: Any) -> float:
    found = finite(value)
    if found is None or abs(found) > 1e12:
        raise ValueError("not a number")
    return found


def _operations(rows: Any, *, on_card: bool) -> list[Operation]:
    if not isinstance(rows, list):
        raise TypeError("operations")
    kept = [
        Operation(
            name=str(row["name"])[:LONGEST],
            calls=_number(row["calls"]),
            self_cpu_ms=_number(row["self_cpu_ms"]),
            cpu_ms=_number(row["cpu_ms"]),
            self_device_ms=_number(row["self_device_ms"]),
            share=0.0,
        )
        for row in rows[:MOST_ROWS]
    ]

    def own(one: Operation) -> float:
        return one.self_device_ms if on_card else one.self_cpu_ms

    whole = sum(map(own, kept)) or 1.0
    return sorted((replace(one, share=round(own(one) / whole, 4)) for one in kept), key=lambda one: -own(one))


def _bars(line: Any) -> list[Bar]:
    """The first steps, one below the other, each from its own beginning."""
    rows = [
        (int(_number(one["step"])), str(one["part"]), _number(one["begin_ms"]), _number(one["ms"]))
        for one in line[:MOST_BARS]
        if one["part"] in PARTS and int(_number(one["step"])) in range(STEPS_DRAWN)
    ]
    begins = {step: min(begin for own, _part, begin, _ms in rows if own == step) for step, *_rest in rows}
    longest = max((begin + ms - begins[step] for step, _part, begin, ms in rows), default=0.0) or 1.0
    scale = WIDE / longest
    return [
        Bar(part, step, round((begin - begins[step]) * scale, 2), round(max(ms * scale, 0.5), 2), ms)
        for step, part, begin, ms in rows
    ]


def advice(about: Mapping[str, Any], shares: Mapping[str, float], operations: list[Operation]) -> list[Advice]:
    """What would make a step faster, the most telling first. Bounds are those from which a remedy usually pays."""
    found = []
    on_card = about["kind"] == "cuda"
    if shares["wait"] >= 0.15:
        found.append(Advice(WAITS, {"share": _percent(shares["wait"])}))
    if on_card:
        kernels, busy_ms = _number(about["kernels"]), _number(about["device_busy_ms"])
        step_ms = _number(about["step_ms"]) or 1.0
        each_us = 1000 * busy_ms / kernels if kernels else 0.0
        if kernels >= MANY and each_us < SMALL_US:
            found.append(Advice(MANY_KERNELS, {"count": round(kernels), "us": f"{each_us:.0f}"}))
        elif kernels and busy_ms / step_ms < 0.5 and shares["wait"] < 0.15:
            found.append(Advice(IDLE, {"share": _percent(busy_ms / step_ms)}))
        if about["precision"] == "float32":
            found.append(Advice(FLOAT32, {}))
    copied = sum(one.share for one in operations if any(word in one.name.lower() for word in COPYING))
    if copied >= 0.2:
        found.append(Advice(COPIES, {"share": _percent(copied)}))
    if operations and operations[0].share >= 0.4:
        found.append(Advice(ONE_OPERATION, {"share": _percent(operations[0].share), "name": operations[0].name}))
    if shares["optimizer"] >= 0.2:
        found.append(Advice(OPTIMIZER, {"share": _percent(shares["optimizer"])}))
    return found


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f} %"
