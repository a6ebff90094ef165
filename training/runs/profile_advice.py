"""What would make a step faster, by rule, from what a profile says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.numbers import finite

SCRIPT = "script"  # what wrote a profile of itself, in `source`
WAITS, MANY_KERNELS, IDLE, COPIES, FLOAT32, ONE_OPERATION, OPTIMIZER = (
    "waits", "many_kernels", "idle", "copies", "float32", "one_operation", "optimizer",
)  # fmt: skip
NO_WORKERS, FEW_WORKERS, NOT_PINNED = "no_workers", "few_workers", "not_pinned"
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
SCRIPT_ADVICE = ADVICE | {  # what a script has instead of the parameters of presets
    WAITS: _(
        "%(share)s of a step waits for the next batch. Read it ahead in other processes, as a DataLoader of torch does "
        "with num_workers, or prepare the data once, before the loop."
    ),
    NO_WORKERS: _(
        "%(share)s of a step waits for the next batch: the DataLoader has num_workers=0, so the loop reads it itself. "
        "With num_workers=%(count)s processes beside it read ahead."
    ),
    FEW_WORKERS: _(
        "%(share)s of a step waits for the next batch, though the DataLoader has num_workers=%(count)s. Give the job "
        "more processor cores and it more workers, or do what is the same in every epoch once, before the loop."
    ),
    MANY_KERNELS: _(
        "The card gets %(count)s small pieces of work a step, %(us)s µs each: starting them takes longer than doing "
        "them. Larger batches or torch.compile give it fewer and larger ones; on a shared card MPS lets several jobs "
        "fill it."
    ),
    IDLE: _(
        "The card computes for %(share)s of a step and waits for the processor the rest. Larger batches fill it; "
        "item(), print and cpu() within a step make it wait."
    ),
    NOT_PINNED: _(
        "%(share)s of the time goes into copying and converting, and the DataLoader has pin_memory=False. With "
        "pin_memory=True and to(device, non_blocking=True) batches reach the card while it computes."
    ),
    FLOAT32: _(
        'It computes in 32 bits. torch.autocast("cuda", torch.bfloat16) around the forward pass lets a card use its '
        "matrix units, several times as fast."
    ),
    ONE_OPERATION: _("%(share)s of the time goes into %(name)s alone: look there first."),
    OPTIMIZER: _(
        "%(share)s of a step goes into the optimizer. With larger batches, or with gradients of several added up, it "
        "comes less often; fused=True makes many optimizers faster."
    ),
}
COPYING = ("copy", "memcpy", "_to_copy", "contiguous", "clone")
SMALL_US, MANY = 25.0, 150


@dataclass(frozen=True)
class Advice:
    """What would help, as a code and facts; `text` says it."""

    code: str
    facts: Mapping[str, Any]
    own: bool = False  # of a script of one's own

    @property
    def text(self) -> str:
        return str((SCRIPT_ADVICE if self.own else ADVICE)[self.code]) % self.facts


@dataclass(frozen=True)
class Loader:
    """Settings of a torch DataLoader: worker processes (0: none), and pinned memory."""

    workers: int
    pinned: bool


def advice(
    facts_of_run: Mapping[str, Any], shares: Mapping[str, float], operations: Sequence[tuple[str, float]]
) -> list[Advice]:
    """Return what would make a step faster, most effective first. Thresholds are where a remedy usually pays off.

    Args:
        facts_of_run: what the program wrote.
        operations: name, and share of all operations' own time; the largest first.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: it is no profile.
    """
    advices = []
    on_card, own = facts_of_run["kind"] == "cuda", facts_of_run.get("source") == SCRIPT
    loader = _loader(facts_of_run) if own else None

    def add(code: str, **facts: Any) -> None:
        advices.append(Advice(code, facts, own))

    if shares["wait"] >= 0.15:
        if loader is None:
            add(WAITS, share=_percent(shares["wait"]))
        elif loader.workers == 0:
            add(NO_WORKERS, share=_percent(shares["wait"]), count=min(max(int(number(facts_of_run["cores"])), 1), 64))
        else:
            add(FEW_WORKERS, share=_percent(shares["wait"]), count=loader.workers)
    if on_card:
        kernels, busy_ms = number(facts_of_run["kernels"]), number(facts_of_run["device_busy_ms"])
        step_ms = number(facts_of_run["step_ms"]) or 1.0
        each_us = 1000 * busy_ms / kernels if kernels else 0.0
        if kernels >= MANY and each_us < SMALL_US:
            add(MANY_KERNELS, count=round(kernels), us=f"{each_us:.0f}")
        elif kernels and busy_ms / step_ms < 0.5 and shares["wait"] < 0.15:
            add(IDLE, share=_percent(busy_ms / step_ms))
        if facts_of_run["precision"] == "float32":
            add(FLOAT32)
    computing = 1 - shares["wait"]  # shares of operations are of that
    copied = computing * sum(share for name, share in operations if any(word in name.lower() for word in COPYING))
    if copied >= 0.2:
        add(NOT_PINNED if on_card and loader and not loader.pinned else COPIES, share=_percent(copied))
    if operations and computing * operations[0][1] >= 0.4:
        add(ONE_OPERATION, share=_percent(computing * operations[0][1]), name=operations[0][0])
    if shares["optimizer"] >= 0.2:
        add(OPTIMIZER, share=_percent(shares["optimizer"]))
    return advices


def _loader(profile: Mapping[str, Any]) -> Loader | None:
    """Return the settings of the script's torch DataLoader; None for any other loader."""
    loader = profile["loader"]
    if loader.get("kind") != "DataLoader":
        return None
    return Loader(workers=int(number(loader["workers"])), pinned=bool(loader["pin_memory"]))


def _percent(share: float) -> str:
    return f"{100 * min(max(share, 0.0), 1.0):.0f} %"


def number(value: Any) -> float:
    """Return a finite number of plausible size; raise ValueError for anything else."""
    result = finite(value)
    if result is None or abs(result) > 1e12:
        raise ValueError("not a number")
    return result
