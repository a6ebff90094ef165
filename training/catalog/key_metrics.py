"""The one metric by which lists and pages rate a model: that of its saved weights, with its split."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aiplatform.lib.numbers import finite

SPLITS = ("val", "test", "train")
DIGITS = 3
LARGE = 1000


@dataclass(frozen=True)
class KeyMetric:
    """A metric of the saved weights: "AP50 · val 0.912".

    Attributes:
        split: the images it was measured on; empty: the metrics do not say.
        best: the best value along the run, where the saved weights have another one.
    """

    label: str
    value: float
    split: str = ""
    best: float | None = None

    @property
    def name(self) -> str:
        return f"{self.label} · {self.split}" if self.split else self.label

    @property
    def text(self) -> str:
        return _text(self.value)

    @property
    def best_text(self) -> str:
        return "" if self.best is None else _text(self.best)

    def with_best(self, best: float | None) -> KeyMetric:
        """Return the metric with the best value of its run, as far as that is higher than shown."""
        is_higher = best is not None and round(best, DIGITS) > round(self.value, DIGITS)
        return replace(self, best=best if is_higher else None)

    def __str__(self) -> str:
        return f"{self.name} {self.text}"


def _text(value: float) -> str:
    """Three decimals, large numbers without more digits than they have."""
    return f"{value:.{DIGITS}f}" if abs(value) < LARGE else f"{value:.6g}"


def find(metrics: Mapping[str, Any], labels: Iterable[tuple[str, str]]) -> KeyMetric | None:
    """Return the first of `labels` (key and label) that the final metrics have; None without any.

    Args:
        metrics: as the program wrote them for the weights that it saved. A key without a split is also found on the
            validation split and on the test split.
    """
    for key, label in labels:
        split, _slash, _name = key.rpartition("/")
        for name in (key,) if split else (key, f"val/{key}", f"test/{key}"):
            metric = of_value(name, label, metrics.get(name))
            if metric is not None:
                return metric
    return None


def of_value(key: str, label: str, value: Any) -> KeyMetric | None:
    """Return one value as a key metric, its split taken from the key; None where it is no number."""
    number = finite(value)
    if number is None:
        return None
    split = key.partition("/")[0]
    return KeyMetric(label.removeprefix(f"{split}/"), number, split) if split in SPLITS else KeyMetric(label, number)
