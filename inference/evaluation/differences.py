"""Comparison of evaluations: which differences are real, and which may be chance.

Two models that judged the same images are compared image by image, which tells far smaller differences apart than
two figures with an error of their own do. *Paired bootstrap* (B. Efron, R. Tibshirani, An Introduction to the
Bootstrap, 1993, chapters 13 and 16): the images are resampled with replacement, as many as there are, and all models
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

MIN_EVALUATIONS, MAX_EVALUATIONS = 2, 6
MAX_IMAGES = 100_000
DRAWN = {"errors", "heat", "mistakes", "objects"}  # of an entry: only its picture needs them
BROKEN = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
MIN_IMAGES = 30  # of fewer, equal models were told apart in up to 88 of 100 cases (of one image) instead of 5
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
        rows: metrics with intervals from resampling.
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


def select_evaluations(
    user: User, numbers: Sequence[int], base: int | None = None
) -> tuple[list[Evaluation], Evaluation]:
    """Return the evaluations to compare, in the order of `numbers`, and the base that the others are compared with.

    Raises:
        Invalid: too few or too many, or they cannot be compared; all reasons at once.
        NotFound: one of them is not visible to the user.
    """
    wanted = list(dict.fromkeys(numbers))
    if not MIN_EVALUATIONS <= len(wanted) <= MAX_EVALUATIONS:
        message = _("Select %(least)s to %(most)s evaluations.") % {"least": MIN_EVALUATIONS, "most": MAX_EVALUATIONS}
        raise Invalid(message, field="evaluation")
    evaluations = Evaluation.objects.visible_to(user).for_list().in_bulk(wanted)
    if missing := [str(number) for number in wanted if number not in evaluations]:
        raise NotFound(_("Evaluation %(numbers)s not found.") % {"numbers": ", ".join(missing)})
    rows = [evaluations[number] for number in wanted]
    if base is not None and base not in evaluations:
        raise Invalid(_("The baseline must be one of the compared evaluations."), field="base")
    first = evaluations[base] if base is not None else rows[0]
    refusals = Refusals()
    for row in rows:
        with refusals:
            if not row.published_attempt or results.load(row) is None:
                raise Invalid(_("%(name)s has no results yet.") % {"name": row}, field="evaluation")
        with refusals:
            if row.task != first.task:
                raise Invalid(
                    _("%(name)s evaluated a different task than %(first)s.") % {"name": row, "first": first},
                    field="evaluation",
                )
        with refusals:
            if _data(row) != _data(first):
                message = _(
                    "%(name)s used %(data)s, %(first)s used %(other)s. Compare evaluations on the same version "
                    "and split."
                )
                facts = {"name": row, "first": first, "data": _data_name(row), "other": _data_name(first)}
                raise Invalid(message % facts, field="evaluation")
    refusals.end()
    return rows, first


def _data(row: Evaluation) -> tuple[Any, str]:
    return row.version_id or row.version_label, row.split


def _data_name(row: Evaluation) -> str:
    return f"{row.version_label} ({row.split_word})"


def compare(rows: Sequence[Evaluation], base: Evaluation) -> Comparison:
    """Compare evaluations that `chosen` gave; the same ones give the same answer.

    Raises:
        Invalid: they did not judge the same images, or more than 100,000 (where no own script judged one of them).
    """
    if any(row.is_scripted for row in rows):
        return _by_name(rows, base)
    return _compare(tuple((row.pk, *results.stamp(row)) for row in rows), base.pk)


def _by_name(rows: Sequence[Evaluation], base: Evaluation) -> Comparison:
    """Compare metrics by name alone: a custom script gives no predictions of single images to resample."""
    summaries = [(results.load(row) or {}).get("summary", {}) for row in rows]
    names = [name for summary in summaries for name, value in summary.items() if finite(value) is not None]
    first = {name.lower(): name for name in reversed(names)}  # a script's AP50 is our ap50, as in rules of gates
    return Comparison(base.pk, 0, [], list(dict.fromkeys(first[name.lower()] for name in names)), by_name=True)


@lru_cache(maxsize=32)
def _compare(which: tuple[tuple[Any, ...], ...], base: int) -> Comparison:
    by_id = Evaluation.objects.select_related("job").in_bulk([number for number, *_stamp in which])
    rows = [by_id[number] for number, *_stamp in which]
    task = TASKS[rows[0].task]
    entries = paired(rows)
    base_index = [row.pk for row in rows].index(base)
    numbers = [row.pk for row in rows]
    count = len(entries[0])
    with readable(rows):
        compared = rows_of(task, entries, numbers, base_index) if count else []
        mcnemar = _mcnemar(task, entries, numbers, base_index)
    missing = {figure.key for figure in task.pages.figures} - {row.key for row in compared}
    summaries = [(results.load(row) or {}).get("summary", {}) for row in rows]
    only_told = [key for key in missing if any(isinstance(summary.get(key), int | float) for summary in summaries)]
    order = [figure.key for figure in task.pages.figures]
    return Comparison(base, count, compared, sorted(only_told, key=order.index), mcnemar)


def paired(rows: Sequence[Evaluation]) -> list[list[dict[str, Any]]]:
    """Return the entries of the images of each evaluation in the same order, without fields that are only drawn.

    Raises:
        Invalid: they did not judge the same images, or more than 100,000, or an entry cannot be read.
    """
    for row in rows:
        results.check_predictions(row)
    by_path = [_entries(row) for row in rows]
    first = by_path[0].keys()
    for row, own in zip(rows, by_path, strict=True):
        if own.keys() != first:
            message = _("%(name)s evaluated %(count)s images, %(first)s evaluated %(other)s; %(common)s are the same.")
            facts = {"name": row, "first": rows[0], "count": len(own), "other": len(first)}
            raise Invalid(message % (facts | {"common": len(own.keys() & first)}), field="evaluation")
    order = sorted(first)
    return [[own[path] for path in order] for own in by_path]


def _entries(row: Evaluation, only: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return entries by path: all without maps and outlines, which are most of their bytes, or `only` some in full."""
    entries: dict[str, dict[str, Any]] = {}
    with readable([row]):
        for entry in results.every_image(row):
            path = str(entry["path"])
            if only is None:
                entries[path] = light(entry)
            elif path in only:
                entries[path] = entry
            if len(entries) > MAX_IMAGES:
                raise Invalid(
                    _("At most %(most)s images are compared.") % {"most": f"{MAX_IMAGES:,}"}, field="evaluation"
                )
    return entries


def light(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry without fields that are only drawn, its numbers in an array: 20 times smaller than lists."""
    fields = {name: value for name, value in entry.items() if name not in DRAWN}
    if "ranked" in entry:
        fields["ranked"] = np.array(entry["ranked"], np.float32)
    return fields


@contextmanager
def readable(rows: Sequence[Evaluation]) -> Iterator[None]:
    """Turn errors of reading results into Invalid: results are outputs of jobs and may hold anything."""
    try:
        yield
    except BROKEN as exc:
        names = ", ".join(map(str, rows))
        log.warning("evaluations=%s results cannot be read: %r", [row.pk for row in rows], exc)
        message = _("The results of %(names)s cannot be read. Evaluate again.") % {"names": names}
        raise Invalid(message, field="evaluation") from None


def rows_of(
    task: ServedTask,
    entries: Sequence[resampling.Entries],
    numbers: Sequence[int],
    base: int,
    *,
    resamples: int = resampling.RESAMPLES,
) -> list[Row]:
    """Return all metrics of a task for evaluations by their ids; `base` is the index of the one to compare with."""
    few = len(entries[0]) < MIN_IMAGES
    rows = []
    # sorted, so that the same evaluations have the same draws in whatever order they were named
    for scored in resampling.score(task, entries, seed=sorted(numbers), resamples=resamples):
        lower = scored.figure.lower_is_better
        row = Row(scored.figure.key, scored.figure.label, lower, [])
        for index, number in enumerate(numbers):
            difference = None
            if index != base:
                delta, drawn = (
                    float(scored.overall[index] - scored.overall[base]),
                    scored.drawn[:, index] - scored.drawn[:, base],
                )
                difference = _difference(delta, drawn, lower_is_better=lower, few=few)
            value, (low, high) = float(scored.overall[index]), resampling.interval(scored.drawn[:, index])
            row.values.append(Value(number, value if math.isfinite(value) else None, low, high, difference))
        rows.append(row)
    return rows


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
    right = [np.array([bool(task.right(entry)) for entry in own]) for own in entries]
    rows = []
    for index, number in enumerate(numbers):
        if index == base:
            continue
        first, other = right[base], right[index]
        only_base, only_other = int((first & ~other).sum()), int((~first & other).sum())
        p = mcnemar_p(only_base, only_other)
        verdict = NO_DIFFERENCE if p >= SIGNIFICANT else BETTER if only_other > only_base else WORSE
        both, neither = int((first & other).sum()), int((~first & ~other).sum())
        rows.append(McNemar(number, both, only_base, only_other, neither, p, verdict))
    return rows


def mcnemar_p(wins: int, losses: int) -> float:
    """Return the probability of a split at least as uneven as `wins` to `losses`, to either side, of a fair coin.

    Exact (binomial), computed by logarithms so that large counts do not overflow.
    """
    count, least = wins + losses, min(wins, losses)
    if count == 0 or wins == losses:
        return 1.0
    log_factor = math.lgamma(count + 1) - count * math.log(2)
    terms = [log_factor - math.lgamma(k + 1) - math.lgamma(count - k + 1) for k in range(least + 1)]
    top = max(terms)
    return min(1.0, 2 * math.exp(top) * math.fsum(math.exp(term - top) for term in terms))


def disagreements(
    pair: tuple[Evaluation, Evaluation], *, show: str, begin: int = 0, count: int = 12
) -> tuple[list[tuple[dict[str, Any], dict[str, Any]]], bool]:
    """Return images of two evaluations side by side, and whether more follow.

    Args:
        show: "differ" are those that one judged better than the other, the farthest apart first; "only_first",
            "only_second" and "both_wrong" by who made no mistake, of tasks that know right and wrong.

    Raises:
        Invalid: no such choice.
    """
    first, second = paired(pair)
    with readable(pair):
        both = _filter_pairs(list(zip(first, second, strict=True)), TASKS[pair[0].task].right, show)
    shown = [entry["path"] for entry, _other in both[begin : begin + count]]
    full_entries = [_entries(row, only=set(shown)) for row in pair]
    return [(full_entries[0][path], full_entries[1][path]) for path in shown], len(both) > begin + count


def _filter_pairs(both: list[Pair], right: Callable[[Mapping[str, Any]], bool] | None, show: str) -> list[Pair]:
    if show == "differ":
        both = [pair for pair in both if pair[0]["badness"] != pair[1]["badness"]]
        both.sort(key=lambda pair: -abs(pair[0]["badness"] - pair[1]["badness"]))
    elif right is not None and show in ("only_first", "only_second", "both_wrong"):
        wanted = {"only_first": (True, False), "only_second": (False, True), "both_wrong": (False, False)}[show]
        both = [pair for pair in both if (bool(right(pair[0])), bool(right(pair[1]))) == wanted]
        both.sort(key=lambda pair: -max(pair[0]["badness"], pair[1]["badness"]))
    else:
        choices = "differ, only_first, only_second, both_wrong" if right is not None else "differ"
        raise Invalid(_("%(name)s must be one of %(words)s.") % {"name": "show", "words": choices}, field="show")
    return both
