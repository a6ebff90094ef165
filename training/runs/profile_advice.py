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
        "%(share)s of a step is spent waiting for the next batch. Give the job more CPU cores, or choose "
        "smaller images; from the second epoch on cached images load faster."
    ),
    MANY_KERNELS: _(
        "The GPU runs %(count)s small kernels per step, %(us)s µs each: launching them takes longer than "
        "running them. A larger batch_size or compile helps; on a shared GPU MPS lets several jobs fill it."
    ),
    IDLE: _("The GPU computes for %(share)s of a step and waits for the CPU otherwise. A larger batch_size helps."),
    COPIES: _(
        "%(share)s of the time is used for copying and converting. Keep data in the format used for computation."
    ),
    FLOAT32: _(
        "The training computes in 32 bits. With amp a GPU uses its matrix units in bfloat16, several times as fast."
    ),
    ONE_OPERATION: _(
        "%(share)s of the time is used by %(name)s alone: a smaller network or smaller images have the most effect."
    ),
    OPTIMIZER: _("%(share)s of a step is used by the optimizer: a larger batch_size reduces this share."),
}
SCRIPT_ADVICE = ADVICE | {  # what a script has instead of the parameters of presets
    WAITS: _(
        "%(share)s of a step is spent waiting for the next batch. Load it ahead in other processes, with "
        "num_workers of a PyTorch DataLoader, or prepare the data once before the loop."
    ),
    NO_WORKERS: _(
        "%(share)s of a step is spent waiting for the next batch: the DataLoader has num_workers=0, so the "
        "training loop loads it. With num_workers=%(count)s, other processes load ahead."
    ),
    FEW_WORKERS: _(
        "%(share)s of a step is spent waiting for the next batch, although the DataLoader has "
        "num_workers=%(count)s. Give the job more CPU cores and more workers, or move work that is the same in "
        "every epoch before the loop."
    ),
    MANY_KERNELS: _(
        "The GPU runs %(count)s small kernels per step, %(us)s µs each: launching them takes longer than "
        "running them. Larger batches or torch.compile help; on a shared GPU MPS lets several jobs fill it."
    ),
    IDLE: _(
        "The GPU computes for %(share)s of a step and waits for the CPU otherwise. Larger batches help; "
        "item(), print and cpu() within a step cause waiting."
    ),
    NOT_PINNED: _(
        "%(share)s of the time is spent copying and converting, and the DataLoader has pin_memory=False. With "
        "pin_memory=True and to(device, non_blocking=True) batches are copied while the GPU computes."
    ),
    FLOAT32: _(
        'The training computes in 32 bits. With torch.autocast("cuda", torch.bfloat16) around the forward '
        "pass a GPU uses its matrix units, several times as fast."
    ),
    ONE_OPERATION: _("%(share)s of the time is used by %(name)s alone: start there."),
    OPTIMIZER: _(
        "%(share)s of a step is used by the optimizer. Use larger batches or gradient accumulation to reduce "
        "its share; fused=True makes many optimizers faster."
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
