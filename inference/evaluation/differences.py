"""Evaluations beside each other: which differences are real, and which may well be chance.

Two models that judged the same images are compared image by image, which tells far smaller differences apart than
two figures with an error of their own do. *Paired bootstrap* (B. Efron, R. Tibshirani, An Introduction to the
Bootstrap, 1993, chapters 13 and 16): the images are drawn anew, with replacement, as many as there are, and all models
are scored on each such draw; the middle 95 % of the differences are the interval. *McNemar's exact test* (M. Fagerland,
S. Lydersen, P. Laake, BMC Medical Research Methodology 13:91, 2013) where an image is right or wrong: if both models
were equally good, those that only one of them has right would fall to either as a coin does.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound, Refusals
from aiplatform.lib.numbers import finite
from inference.evaluation import resampling, results
from inference.evaluation.models import Evaluation
from inference.kit.contracts.served_task import ServedTask
from inference.kit.task_kinds import TASKS

LEAST, MOST = 2, 6
MOST_IMAGES = 100_000
DRAWN = {"errors", "heat", "mistakes", "objects"}  # of an entry: only its picture needs them
BROKEN = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
FEW_IMAGES = 30  # of fewer, equal models were told apart in up to 88 of 100 cases (of one image) instead of 5
SIGNIFICANT = 0.05
BETTER, WORSE, NO_DIFFERENCE = "better", "worse", "no_difference"
Pair = tuple[dict[str, Any], dict[str, Any]]  # entries of one image
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Difference:
    """How much a figure differs from that of the base, with the ends of the interval in which the truth probably is.

    `verdict`: better or worse where 0 lies outside, else no_difference; always that of fewer than FEW_IMAGES images,
    of which the interval comes out too narrow.
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
        only_told: keys of figures of which images do not keep enough to say an interval: average precisions by size
            of objects, means over their classes, and what an older evaluator did not keep.
        by_name: an own script judged one of them, so figures stand beside each other by name alone.
        mcnemar: one for each evaluation but the base; empty where images are not right or wrong.
    """

    base: int
    images: int
    rows: list[Row]
    only_told: list[str] = field(default_factory=list)
    mcnemar: list[McNemar] = field(default_factory=list)
    resamples: int = resampling.RESAMPLES
    by_name: bool = False


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
        Invalid: they did not judge the same images, or more than 100,000 (where no own script judged one of them).
    """
    if any(row.is_scripted for row in rows):
        return _by_name(rows, base)
    return _compared(tuple((row.pk, *results.stamp(row)) for row in rows), base.pk)


def _by_name(rows: Sequence[Evaluation], base: Evaluation) -> Comparison:
    """Figures by name alone: an own script gives no answers to single images, so nothing can be drawn anew."""
    summaries = [(results.load(row) or {}).get("summary", {}) for row in rows]
    names = [name for one in summaries for name, value in one.items() if finite(value) is not None]
    first = {name.lower(): name for name in reversed(names)}  # a script's AP50 is our ap50, as in rules of gates
    return Comparison(base.pk, 0, [], list(dict.fromkeys(first[name.lower()] for name in names)), by_name=True)


@lru_cache(maxsize=32)
def _compared(which: tuple[tuple[Any, ...], ...], base: int) -> Comparison:
    found = Evaluation.objects.select_related("job").in_bulk([number for number, *_stamp in which])
    rows = [found[number] for number, *_stamp in which]
    task = TASKS[rows[0].task]
    entries = paired(rows)
    place = [row.pk for row in rows].index(base)
    numbers = [row.pk for row in rows]
    count = len(entries[0])
    with readable(rows):
        compared = rows_of(task, entries, numbers, place) if count else []
        mcnemar = _mcnemar(task, entries, numbers, place)
    told = {figure.key for figure in task.pages.figures} - {row.key for row in compared}
    summaries = [(results.load(row) or {}).get("summary", {}) for row in rows]
    only_told = [key for key in told if any(isinstance(one.get(key), int | float) for one in summaries)]
    order = [figure.key for figure in task.pages.figures]
    return Comparison(base, count, compared, sorted(only_told, key=order.index), mcnemar)


def paired(rows: Sequence[Evaluation]) -> list[list[dict[str, Any]]]:
    """Entries of the images of each evaluation, in one order of the images, without what is only drawn.

    Raises:
        Invalid: they did not judge the same images, or more than 100,000, or an entry cannot be read.
    """
    for row in rows:
        results.check_predictions(row)
    by_path = [_entries(row) for row in rows]
    first = by_path[0].keys()
    for row, own in zip(rows, by_path, strict=True):
        if own.keys() != first:
            said = _("%(name)s judged %(count)s images, %(first)s judged %(other)s, and %(common)s are the same.")
            facts = {"name": row, "first": rows[0], "count": len(own), "other": len(first)}
            raise Invalid(said % (facts | {"common": len(own.keys() & first)}), field="evaluation")
    order = sorted(first)
    return [[own[path] for path in order] for own in by_path]


def _entries(row: Evaluation, only: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """Entries by path: all of them without maps and outlines, which are most of their bytes, or some of them whole."""
    found: dict[str, dict[str, Any]] = {}
    with readable([row]):
        for entry in results.every_image(row):
            path = str(entry["path"])
            if only is None:
                found[path] = light(entry)
            elif path in only:
                found[path] = entry
            if len(found) > MOST_IMAGES:
                raise Invalid(
                    _("At most %(most)s images are compared.") % {"most": f"{MOST_IMAGES:,}"}, field="evaluation"
                )
    return found


def light(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without what is only drawn, its numbers in an array: in lists they take twenty times the room."""
    found = {name: value for name, value in entry.items() if name not in DRAWN}
    if "ranked" in entry:
        found["ranked"] = np.array(entry["ranked"], np.float32)
    return found


@contextmanager
def readable(rows: Sequence[Evaluation]) -> Iterator[None]:
    """Results lie among the outputs of jobs: whatever stands there breaks no page."""
    try:
        yield
    except BROKEN as exc:
        names = ", ".join(map(str, rows))
        log.warning("evaluations=%s results cannot be read: %r", [row.pk for row in rows], exc)
        said = _("The results of %(names)s cannot be read. Evaluate again.") % {"names": names}
        raise Invalid(said, field="evaluation") from None


def rows_of(
    task: ServedTask,
    entries: Sequence[resampling.Entries],
    numbers: Sequence[int],
    base: int,
    *,
    resamples: int = resampling.RESAMPLES,
) -> list[Row]:
    """All figures of a task of evaluations by their numbers; `base` is the place of the one the others differ from."""
    few = len(entries[0]) < FEW_IMAGES
    found = []
    # sorted, so that the same evaluations have the same draws in whatever order they were named
    for one in resampling.score(task, entries, seed=sorted(numbers), resamples=resamples):
        lower = one.figure.lower_is_better
        row = Row(one.figure.key, one.figure.label, lower, [])
        for place, number in enumerate(numbers):
            difference = None
            if place != base:
                off, drawn = float(one.whole[place] - one.whole[base]), one.drawn[:, place] - one.drawn[:, base]
                difference = _difference(off, drawn, lower_is_better=lower, few=few)
            value, (low, high) = float(one.whole[place]), resampling.interval(one.drawn[:, place])
            row.values.append(Value(number, value if math.isfinite(value) else None, low, high, difference))
        found.append(row)
    return found


def _difference(value: float, drawn: resampling.Numbers, *, lower_is_better: bool, few: bool) -> Difference | None:
    low, high = resampling.interval(drawn)
    if low is None or high is None or not math.isfinite(value):
        return None
    above, below = (WORSE, BETTER) if lower_is_better else (BETTER, WORSE)
    verdict = NO_DIFFERENCE if few else above if low > 0 else below if high < 0 else NO_DIFFERENCE
    return Difference(value, low, high, verdict)


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
    with readable(pair):
        both = _chosen(list(zip(first, second, strict=True)), TASKS[pair[0].task].right, show)
    shown = [one["path"] for one, _other in both[begin : begin + count]]
    whole = [_entries(row, only=set(shown)) for row in pair]
    return [(whole[0][path], whole[1][path]) for path in shown], len(both) > begin + count


def _chosen(both: list[Pair], right: Callable[[Mapping[str, Any]], bool] | None, show: str) -> list[Pair]:
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
    return both
