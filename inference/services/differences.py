"""Evaluations beside each other: which differences are real, and which may well be chance.

Two models that judged the same images are compared image by image, which tells far smaller differences apart than
two figures with an error of their own do. *Paired bootstrap* (B. Efron, R. Tibshirani, An Introduction to the
Bootstrap, 1993, chapters 13 and 16): the images are drawn anew, with replacement, as many as there are, and all models
are scored on each such draw; the middle 95 % of the differences are the interval. *McNemar's exact test* (M. Fagerland,
S. Lydersen, P. Laake, BMC Medical Research Methodology 13:91, 2013) where an image is right or wrong: if both models
were equally good, those that only one of them has right would fall to either as a coin does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound, Refusals
from inference.models import Evaluation
from inference.services import results
from inference.task_kinds import TASKS
from inference.task_kinds.served import Measure, ServedTask

LEAST, MOST = 2, 6
MOST_IMAGES = 100_000
RESAMPLES, AT_ONCE = 2000, 50
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
BETTER, WORSE, NO_DIFFERENCE = "better", "worse", "no_difference"
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """How much a figure differs from that of the base, with the ends of the interval in which the truth probably is.

    `verdict`: better or worse where 0 lies outside, else no_difference.
    """

    value: float
    low: float
    high: float
    verdict: str


@dataclass(frozen=True)
class Value:
    """A figure of one evaluation with its interval; None where no image counts. `difference`: None of the base."""

    evaluation: int
    value: float | None
    low: float | None
    high: float | None
    difference: Difference | None = None


@dataclass(frozen=True)
class Row:
    """One figure of all evaluations, in their order."""

    key: str
    label: str
    lower_is_better: bool
    values: list[Value]


@dataclass(frozen=True)
class McNemar:
    """On how many images the base and another were right, and how likely that is if both are equally good."""

    evaluation: int
    both_right: int
    only_base: int
    only_other: int
    both_wrong: int
    p: float
    verdict: str


@dataclass(frozen=True)
class Comparison:
    """What came of comparing evaluations.

    Attributes:
        images: how many images all of them judged.
        rows: figures that were drawn anew, with intervals.
        only_told: keys of figures of which an evaluation keeps too little to say an interval (average precisions).
        mcnemar: one for each evaluation but the base; empty where images are not right or wrong.
    """

    base: int
    images: int
    rows: list[Row]
    only_told: list[str] = field(default_factory=list)
    mcnemar: list[McNemar] = field(default_factory=list)
    resamples: int = RESAMPLES


def chosen(user: User, numbers: Sequence[int], base: int | None = None) -> tuple[list[Evaluation], Evaluation]:
    """The evaluations to compare, in the order they were named, and which of them the others are measured against.

    Raises:
        Invalid: too few or too many, or they cannot be compared; all reasons at once.
        NotFound: one of them is not there for this person.
    """
    wanted = list(dict.fromkeys(numbers))
    if not LEAST <= len(wanted) <= MOST:
        said = _("Choose from %(least)s to %(most)s evaluations.") % {"least": LEAST, "most": MOST}
        raise Invalid(said, field="evaluation")
    found = Evaluation.objects.visible_to(user).for_list().in_bulk(wanted)
    if missing := [str(number) for number in wanted if number not in found]:
        raise NotFound(_("There is no evaluation %(numbers)s.") % {"numbers": ", ".join(missing)})
    rows = [found[number] for number in wanted]
    if base is not None and base not in found:
        raise Invalid(_("The base is one of the evaluations that are compared."), field="base")
    first = found[base] if base is not None else rows[0]
    refusals = Refusals()
    for row in rows:
        with refusals:
            if not row.published_attempt or results.load(row) is None:
                raise Invalid(_("%(name)s has no results yet.") % {"name": row}, field="evaluation")
        with refusals:
            if row.task != first.task:
                raise Invalid(
                    _("%(name)s judged another task than %(first)s.") % {"name": row, "first": first},
                    field="evaluation",
                )
        with refusals:
            if _data(row) != _data(first):
                said = _("%(name)s judged %(data)s, %(first)s judged %(other)s. Compare on the same version and split.")
                facts = {"name": row, "first": first, "data": _named(row), "other": _named(first)}
                raise Invalid(said % facts, field="evaluation")
    refusals.end()
    return rows, first


def _data(row: Evaluation) -> tuple[Any, str]:
    return row.version_id or row.version_label, row.split


def _named(row: Evaluation) -> str:
    return f"{row.version_label} ({row.split_word})"


def compare(rows: Sequence[Evaluation], base: Evaluation) -> Comparison:
    """Compare evaluations that `chosen` gave; the same ones give the same answer.

    Raises:
        Invalid: they did not judge the same images, or more than 100,000.
    """
    return _compared(tuple((row.pk, *results.stamp(row)) for row in rows), base.pk)


@lru_cache(maxsize=32)
def _compared(which: tuple[tuple[Any, ...], ...], base: int) -> Comparison:
    found = Evaluation.objects.select_related("job").in_bulk([number for number, *_stamp in which])
    rows = [found[number] for number, *_stamp in which]
    task = TASKS[rows[0].task]
    entries = paired(rows)
    place = [row.pk for row in rows].index(base)
    numbers = [row.pk for row in rows]
    count = len(entries[0])
    compared = _rows(task.measures, entries, numbers, place) if count else []
    told = {figure.key for figure in task.pages.figures} - {measure.key for measure in task.measures}
    summaries = [(results.load(row) or {}).get("summary", {}) for row in rows]
    only_told = [key for key in told if any(isinstance(one.get(key), int | float) for one in summaries)]
    order = [figure.key for figure in task.pages.figures]
    return Comparison(
        base, count, compared, sorted(only_told, key=order.index), _mcnemar(task, entries, numbers, place)
    )


def paired(rows: Sequence[Evaluation]) -> list[list[dict[str, Any]]]:
    """Entries of the images of each evaluation, in one order of the images.

    Raises:
        Invalid: they did not judge the same images, or more than 100,000.
    """
    by_path = [{entry["path"]: entry for entry in results.every_image(row)} for row in rows]
    first = by_path[0].keys()
    if len(first) > MOST_IMAGES:
        raise Invalid(_("At most %(most)s images are compared.") % {"most": f"{MOST_IMAGES:,}"}, field="evaluation")
    for row, own in zip(rows, by_path, strict=True):
        if own.keys() != first:
            said = _("%(name)s judged %(count)s images, %(first)s judged %(other)s, and %(common)s are the same.")
            facts = {
                "name": row,
                "first": rows[0],
                "count": len(own),
                "other": len(first),
                "common": len(own.keys() & first),
            }
            raise Invalid(said % facts, field="evaluation")
    order = sorted(first)
    return [[own[path] for path in order] for own in by_path]


def _rows(
    measures: Sequence[Measure], entries: Sequence[Sequence[Mapping[str, Any]]], numbers: Sequence[int], base: int
) -> list[Row]:
    parts = [[[float(part(one)) for one in own] for own in entries] for m in measures for part in (m.over, m.under)]
    sums = np.array(parts).reshape(-1, len(entries[0]))  # [measures × 2 × evaluations, images]
    shape = (len(measures), 2, len(entries))
    whole = sums.sum(1).reshape(shape)
    drawn = _drawn(sums, seed=numbers).reshape(RESAMPLES, *shape)
    found = []
    for at, measure in enumerate(measures):
        values = _quotients(whole[at, 0], whole[at, 1])
        again = _quotients(drawn[:, at, 0], drawn[:, at, 1])  # [resamples, evaluations]
        row = Row(measure.key, measure.label, measure.lower_is_better, [])
        for place, number in enumerate(numbers):
            difference = None
            if place != base:
                off, lower = float(values[place] - values[base]), measure.lower_is_better
                difference = _difference(off, again[:, place] - again[:, base], lower_is_better=lower)
            value, (low, high) = float(values[place]), _interval(again[:, place])
            row.values.append(Value(number, value if math.isfinite(value) else None, low, high, difference))
        found.append(row)
    return found


def _drawn(sums: Numbers, *, seed: Sequence[int]) -> Numbers:
    """Sums [rows, images] over images drawn with replacement, [resamples, rows]; the same draws for all rows."""
    rows, count = sums.shape
    chance = np.random.default_rng(list(seed))
    found = np.empty((RESAMPLES, rows))
    for begin in range(0, RESAMPLES, AT_ONCE):
        often = [np.bincount(chance.integers(0, count, count), minlength=count) for _draw in range(AT_ONCE)]
        found[begin : begin + AT_ONCE] = np.array(often, float) @ sums.T
    return found


def _quotients(over: Numbers, under: Numbers) -> Numbers:
    return np.divide(over, under, out=np.full(np.shape(over), np.nan), where=np.asarray(under) > 0)


def _interval(values: Numbers) -> tuple[float | None, float | None]:
    there = values[np.isfinite(values)]
    if not len(there):
        return None, None
    low, high = np.quantile(there, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return float(low), float(high)


def _difference(value: float, drawn: Numbers, *, lower_is_better: bool) -> Difference | None:
    low, high = _interval(drawn)
    if low is None or high is None or not math.isfinite(value):
        return None
    above, below = (WORSE, BETTER) if lower_is_better else (BETTER, WORSE)
    verdict = above if low > 0 else below if high < 0 else NO_DIFFERENCE
    return Difference(float(value), low, high, verdict)


def _mcnemar(task: ServedTask, entries: Sequence[Sequence[Mapping[str, Any]]], numbers: Sequence[int],
             base: int) -> list[McNemar]:  # fmt: skip
    if task.right is None:
        return []
    right = [np.array([bool(task.right(one)) for one in own]) for own in entries]
    found = []
    for place, number in enumerate(numbers):
        if place == base:
            continue
        first, other = right[base], right[place]
        only_base, only_other = int((first & ~other).sum()), int((~first & other).sum())
        p = mcnemar_p(only_base, only_other)
        verdict = NO_DIFFERENCE if p >= SIGNIFICANT else BETTER if only_other > only_base else WORSE
        both, neither = int((first & other).sum()), int((~first & ~other).sum())
        found.append(McNemar(number, both, only_base, only_other, neither, p, verdict))
    return found


def mcnemar_p(one: int, other: int) -> float:
    """Probability of a split at least as uneven as `one` to `other`, to either side, if a coin had made it.

    Exact (binomial), computed by logarithms so that large counts do not overflow.
    """
    count, least = one + other, min(one, other)
    if count == 0 or one == other:
        return 1.0
    whole = math.lgamma(count + 1) - count * math.log(2)
    terms = [whole - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(least + 1)]
    top = max(terms)
    return min(1.0, 2 * math.exp(top) * math.fsum(math.exp(term - top) for term in terms))


def disagreements(
    pair: tuple[Evaluation, Evaluation], *, show: str, begin: int = 0, count: int = 12
) -> tuple[list[tuple[dict[str, Any], dict[str, Any]]], bool]:
    """Images of two evaluations beside each other, and whether more follow.

    Args:
        show: "differ" are those that one judged better than the other, the farthest apart first; "only_first",
            "only_second" and "both_wrong" by who made no mistake, of tasks that know right and wrong.

    Raises:
        Invalid: no such choice.
    """
    first, second = paired(pair)
    both = list(zip(first, second, strict=True))
    right = TASKS[pair[0].task].right
    if show == "differ":
        both = [one for one in both if one[0]["badness"] != one[1]["badness"]]
        both.sort(key=lambda one: -abs(one[0]["badness"] - one[1]["badness"]))
    elif right is not None and show in ("only_first", "only_second", "both_wrong"):
        wanted = {"only_first": (True, False), "only_second": (False, True), "both_wrong": (False, False)}[show]
        both = [one for one in both if (bool(right(one[0])), bool(right(one[1]))) == wanted]
        both.sort(key=lambda one: -max(one[0]["badness"], one[1]["badness"]))
    else:
        words = "differ, only_first, only_second, both_wrong" if right is not None else "differ"
        raise Invalid(_("%(name)s is one of %(words)s.") % {"name": "show", "words": words}, field="show")
    return both[begin : begin + count], len(both) > begin + count
