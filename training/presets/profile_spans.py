"""Whose time it was: marks around and inside steps, laid over each other until every moment belongs to one part.

Pure, the standard library only. Times are integers of one clock (nanoseconds).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .profile_facts import BACKWARD, FORWARD, LOADER, MARK, OPTIMIZER, OTHER, WAIT

STEP = "profiled step"  # the mark around a whole step
DERIVED, NAMED, CARD = 1, 2, 3  # rank of what is found in operations, was marked, and was computed by a card
_BACKWARD = "autograd::engine::evaluate_function"
_OPTIMIZER = ("Optimizer.step#", "Optimizer.zero_grad#")
_PRODUCTS = ("mm", "linear", "conv", "attention")  # operations whose numbers say in which precision it computes
_PRECISIONS = {"c10::BFloat16": "bfloat16", "c10::Half": "float16", "float": "float32", "double": "float64"}


class Span(NamedTuple):
    begin: int
    end: int
    part: str
    rank: int = NAMED


class Found(NamedTuple):
    """What torch's record says of the steps."""

    steps: list[tuple[int, int]]
    spans: list[Span]
    precision: str  # of most products; "" where there are none


def laid(steps: Sequence[tuple[int, int]], spans: Iterable[Span]) -> list[list[Span]]:
    """Cut spans so that of each step every moment belongs to one of them or to none, in order.

    Where several hold, the highest rank wins, and of one rank what began last: what lies inside another.
    """
    ordered = sorted(spans)
    edges = {time for step in steps for time in step}
    cuts = sorted(edges | {time for span in ordered for time in span[:2]})
    pieces: list[Span] = []
    waiting = iter(ordered)
    following = next(waiting, None)
    open_spans: list[tuple[int, int, int, Span]] = []
    number = itertools.count()
    for begin, end in zip(cuts, cuts[1:]):  # noqa: B905, RUF007  the SDK supports Python 3.9
        while following is not None and following.begin <= begin:
            heapq.heappush(open_spans, (-following.rank, -following.begin, -next(number), following))
            following = next(waiting, None)
        while open_spans and open_spans[0][-1].end <= begin:
            heapq.heappop(open_spans)
        if open_spans:
            winner = open_spans[0][-1]
            if pieces and pieces[-1].end == begin and pieces[-1].part == winner.part and begin not in edges:
                pieces[-1] = pieces[-1]._replace(end=end)
            else:
                pieces.append(Span(begin, end, winner.part, winner.rank))
    return [[piece for piece in pieces if begin <= piece.begin and piece.end <= end] for begin, end in steps]


def shares(steps: Sequence[tuple[int, int]], pieces: Sequence[Sequence[Span]]) -> dict[str, float]:
    """Share of the steps' time by part, 0..1; what belongs to no part is "other", so they add up to 1."""
    total = sum(end - begin for begin, end in steps)
    spent: dict[str, int] = {}
    for piece in itertools.chain.from_iterable(pieces):
        spent[piece.part] = spent.get(piece.part, 0) + piece.end - piece.begin
    if total <= 0:
        return {OTHER: 1.0}
    shares_of_parts = {part: time / total for part, time in spent.items() if part != OTHER}
    return shares_of_parts | {OTHER: max(1.0 - sum(shares_of_parts.values()), 0.0)}


def read_events(events: Iterable[Any]) -> Found:
    """Read steps and spans from the events of torch's profiler (`profiler.kineto_results.events()`).

    Marks are ranges that were laid around parts, by torch itself around waiting for a DataLoader. Backward is what
    autograd's engine runs, the optimizer what torch's ranges around `Optimizer.step` and `zero_grad` hold. Forward goes
    from the first to the last operation of which the engine later runs the other side: both carry one sequence number.
    Work of a card belongs to the part that gave it out.
    """
    marks: list[Span] = []
    steps: list[tuple[int, int]] = []
    others: list[Span] = []
    last: dict[tuple[int, int], Span] = {}  # of each thread and sequence number the operation that began last
    answered: set[tuple[int, int]] = set()
    launched: dict[int, int] = {}  # when the operation of a number began
    work: list[tuple[int, int, int]] = []  # of a card: begin, end, the operation that gave it out
    precisions: dict[str, int] = {}
    for event in events:
        name, begin = event.name(), event.start_ns()
        end = begin + event.duration_ns()
        if "CPU" not in str(event.device_type()):
            if not event.is_user_annotation():
                work.append((begin, end, event.linked_correlation_id()))
            continue
        if not event.linked_correlation_id():  # an operation: calls of the card's driver count by themselves
            launched[event.correlation_id()] = begin
        if name == MARK + STEP:
            steps.append((begin, end))
        elif name.startswith(MARK):
            marks.append(Span(begin, end, name[len(MARK) :]))
        elif name.startswith(LOADER):
            marks.append(Span(begin, end, WAIT))
        elif name.startswith(_OPTIMIZER):
            others.append(Span(begin, end, OPTIMIZER, DERIVED))
        elif name.startswith(_BACKWARD):
            others.append(Span(begin, end, BACKWARD, DERIVED))
            answered.add((event.fwd_thread_id(), event.sequence_nr()))
        elif event.sequence_nr() >= 0 and event.scope() == 0:
            own = (event.start_thread_id(), event.sequence_nr())
            if own not in last or last[own].begin < begin:
                last[own] = Span(begin, end, FORWARD, DERIVED)
        if name.startswith("aten::") and any(word in name for word in _PRODUCTS):
            precision = next((_PRECISIONS[word] for word in event.dtypes() if word in _PRECISIONS), "")
            precisions[precision] = precisions.get(precision, 0) + 1
    others += [span for own, span in last.items() if own in answered]
    steps.sort()
    spans = marks + _runs(steps, others)
    precisions.pop("", None)
    return Found(
        steps,
        spans + _launched_spans(laid(steps, spans), work, launched),
        max(precisions, key=lambda name: precisions[name], default=""),
    )


def _runs(steps: Sequence[tuple[int, int]], spans: Iterable[Span]) -> list[Span]:
    """Merge consecutive spans of one part within a step, including the gaps between them."""
    runs: list[Span] = []
    ordered = iter(sorted(spans))
    span = next(ordered, None)
    for begin, end in steps:
        before = len(runs)
        while span is not None and span.begin < end:
            if span.begin >= begin:
                if len(runs) > before and span.part == runs[-1].part:
                    runs[-1] = runs[-1]._replace(end=max(runs[-1].end, span.end))
                elif len(runs) == before or span.begin >= runs[-1].end:  # else inside: layers computed again
                    runs.append(span)
            span = next(ordered, None)
    return runs


def _launched_spans(
    pieces: Sequence[Sequence[Span]], work: Iterable[tuple[int, int, int]], launched: dict[int, int]
) -> list[Span]:
    """Attribute the work of a GPU to the part that launched it; work launched in no part is left to the rest."""
    holding = list(itertools.chain.from_iterable(pieces))
    launches = sorted((launched[number], begin, end) for begin, end, number in work if number in launched)
    spans, index = [], 0
    for time, begin, end in launches:
        while index < len(holding) and holding[index].end <= time:
            index += 1
        if index < len(holding) and holding[index].begin <= time:
            spans.append(Span(begin, end, holding[index].part, CARD))
    return spans
