"""What a check of the report is: its quantities with their expectations, what it requires, and its result."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from workers.resources.nodes.telemetry.probe import Card

Value = float | str | bool
Values = Mapping[str, Value]


class Status(StrEnum):
    """How a check went."""

    PASSED = "pass"
    FAILED = "fail"
    NOT_AVAILABLE = "not available"  # the node lacks something that the check requires
    SKIPPED = "skipped"  # no time was left, or the GPUs were no longer reserved
    SIMULATED = "simulated"  # nothing was measured: the GPUs are simulated


class Need(StrEnum):
    """What a check requires of the node in addition to one GPU."""

    TORCH = "PyTorch with CUDA"
    TWO_GPUS = "two GPUs"
    MPS = "CUDA MPS"
    EVICTION = "a driver that can move GPU memory to the host"
    COMPILER = "Triton and a C compiler"
    TENSORRT = "TensorRT"
    VIDEO = "PyAV with NVDEC"
    NVIDIA_SMI = "nvidia-smi"


class NotAvailable(Exception):
    """A check finds while it runs that the node cannot do what it measures; the message says why."""


@dataclass(frozen=True)
class Quantity:
    """One value that a check measures.

    Attributes:
        at_least, at_most, equals: what is expected; none of them: the value is only recorded.
        example: a value of a healthy node, which simulated GPUs report.
        optional: the check may leave it out.
    """

    key: str
    label: str
    example: Value
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    equals: Value | None = None
    optional: bool = False

    @property
    def expectation(self) -> str:
        """The expectation in words; "" where the value is only recorded."""
        bounds = [
            f"{sign} {bound:g}" for sign, bound in (("≥", self.at_least), ("≤", self.at_most)) if bound is not None
        ]
        if self.equals is not None:
            bounds = [as_text(self.equals)]
        return " and ".join(bounds) + (f" {self.unit}" if bounds and self.unit else "")

    @property
    def is_expected(self) -> bool:
        return self.expectation != ""

    def is_met(self, value: Value) -> bool:
        """Whether a measured value is as expected."""
        if self.equals is not None:
            return value == self.equals
        number = float(value) if self.is_expected else 0.0
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)


@dataclass(frozen=True)
class Check:
    """One subject of the report.

    Attributes:
        lines: numbers of the feature list that it proves.
        run: "module:function" below `checks`; the function takes a `Context` and returns values by key.
        seconds: how long it usually takes; it is not started with less time left, and killed after `limit_s`.
    """

    id: str
    title: str
    lines: Sequence[str]
    run: str
    seconds: float
    quantities: Sequence[Quantity]
    needs: Sequence[Need] = (Need.TORCH,)
    limit_factor: float = 3.0

    @property
    def limit_s(self) -> float:
        return self.limit_factor * self.seconds

    def function(self) -> Callable[[Context], Values]:
        """Import what it runs; only the process of the check does."""
        module, _colon, name = self.run.partition(":")
        function: Callable[[Context], Values] = getattr(importlib.import_module(f"{__package__}.checks.{module}"), name)
        return function

    def examples(self) -> dict[str, Value]:
        return {quantity.key: quantity.example for quantity in self.quantities}


@dataclass(frozen=True)
class Context:
    """What a check is given.

    Attributes:
        devices: the GPUs that are reserved for the report; the first one is measured where one is enough.
        folder: its own folder, below AIP_DATA_ROOT; everything that runs there is ended after the check.
        seconds: after which it is killed.
        device: "cuda"; tests run the same programs with "cpu".
        job: the platform's job that holds the GPUs; None where no platform runs on this node.
    """

    devices: Sequence[Card]
    folder: Path
    seconds: float
    device: str = "cuda"
    job: int | None = None


@dataclass
class Row:
    """One measured value in the report."""

    key: str
    label: str
    unit: str
    value: Value | None
    expectation: str
    met: bool | None  # None: nothing was expected


@dataclass
class Result:
    """How one check went."""

    id: str
    title: str
    lines: list[str]
    status: Status
    reason: str = ""
    seconds: float = 0.0
    values: list[Row] = field(default_factory=list)
    output: str = ""  # the end of what a failed check printed

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def result_of(check: Check, status: Status | None = None, reason: str = "", **more: Any) -> Result:
    """A result without values."""
    return Result(check.id, check.title, list(check.lines), status or Status.FAILED, reason, **more)


def judge(check: Check, values: Values, *, simulated: bool = False) -> Result:
    """Compare values with what is expected of them.

    Args:
        simulated: nothing was measured, so the check has neither passed nor failed.
    """
    rows = []
    for quantity in check.quantities:
        value = values.get(quantity.key)
        if value is None and (quantity.optional or not quantity.is_expected):
            continue
        met = None
        if quantity.is_expected:
            met = value is not None and quantity.is_met(value)
        rows.append(Row(quantity.key, quantity.label, quantity.unit, value, quantity.expectation, met))
    missed = [row for row in rows if row.met is False]
    if simulated:
        return result_of(check, Status.SIMULATED, "The GPUs are simulated: nothing was measured.", values=rows)
    reason = "; ".join(f"{row.label}: {_measured(row)}, expected {row.expectation}" for row in missed)
    return result_of(check, Status.FAILED if missed else Status.PASSED, reason, values=rows)


def _measured(row: Row) -> str:
    return "not measured" if row.value is None else f"{as_text(row.value)} {row.unit}".strip()


def as_text(value: Value) -> str:
    """A value as the report shows it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:.4g}" if abs(value) < 1000 else f"{value:,.0f}"
