"""Timeline plot of a simulation: cards in use and queue length over time, one pair of panels for each policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from PIL import Image, ImageDraw, ImageFont

from workers.core.count_classes import ENVIRONMENT
from workers.planning.simulator.simulate import Outcome
from workers.planning.simulator.workloads import Work

WIDTH, PANEL, QUEUE, GAP = 1400, 220, 90, 30
LEFT, RIGHT, TOP = 64, 24, 58
HEIGHT = PANEL + QUEUE + 2 * GAP + 24
INK, MUTED, GRID, PAPER = "#1c2330", "#667085", "#e3e7ee", "#ffffff"
LAYERS = (
    ("environments", "#7a5af8"),
    ("1 card", "#2e90fa"),
    ("2-7 cards", "#12b76a"),
    ("8 cards and more", "#f79009"),
    ("starting, or lost to a preemption", "#98a2b3"),
)
DAY = 86_400.0
STEPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000, 100_000)
"""Distances of grid lines."""

Interval = tuple[float, float, float]
"""Begin and end in seconds, and a height."""


def draw(outcomes: Sequence[tuple[str, Outcome]]) -> Image.Image:
    """The picture: for each named outcome the cards by size of job, and below them the waiting jobs."""
    image = Image.new("RGB", (WIDTH, TOP + HEIGHT * len(outcomes)), PAPER)
    pen = ImageDraw.Draw(image)
    workload = outcomes[0][1].workload
    cards = workload.setup.nodes * workload.setup.cards
    pen.text((LEFT, 10), f"{workload.name}: {len(workload.works)} jobs on {cards} cards", INK, _font(16))
    x = LEFT
    for name, colour in LAYERS:
        pen.rectangle((x, 37, x + 10, 47), colour)
        pen.text((x + 16, 34), name, MUTED, _font(12))
        x += 32 + round(pen.textlength(name, _font(12)))
    queues = [levels(_waiting(outcome), outcome.workload.until_s) for _, outcome in outcomes]
    tallest = max(1.0, *(max(queue) for queue in queues))
    for n, (name, outcome) in enumerate(outcomes):
        top = TOP + n * HEIGHT
        _cards(pen, outcome, name, top, cards)
        _queue(pen, queues[n], top + GAP + PANEL + 12, tallest, outcome.workload.until_s)
    return image


def levels(intervals: Iterable[Interval], until_s: float) -> list[float]:
    """Mean height in each column of pixels from 0 to `until_s`."""
    columns = WIDTH - LEFT - RIGHT
    per_s = columns / until_s
    heights = [0.0] * columns
    for begin, end, height in intervals:
        a, b = max(0.0, begin * per_s), min(float(columns), end * per_s)
        column = int(a)
        while a < b:
            edge = min(b, column + 1.0)
            heights[column] += height * (edge - a)
            a, column = edge, column + 1
    return heights


def _layer(work: Work) -> int:
    if work.counts_as == ENVIRONMENT.name:
        return 0
    return 1 if work.cards < 2 else 2 if work.cards < 8 else 3


def _cards(pen: ImageDraw.ImageDraw, outcome: Outcome, name: str, top: int, cards: int) -> None:
    layers: list[list[Interval]] = [[] for _ in LAYERS]
    for span in outcome.spans:
        work = outcome.workload.works[span.job]
        layers[_layer(work)].append((span.worked_from, span.worked_to, work.cards))
        layers[-1].append((span.began, span.worked_from, work.cards))
        layers[-1].append((span.worked_to, span.ended, work.cards))
    until = outcome.workload.until_s
    base = top + GAP + PANEL
    _axes(pen, top + GAP, base, float(cards), until)
    floor = [0.0] * (WIDTH - LEFT - RIGHT)
    for (_, colour), intervals in zip(LAYERS, layers, strict=True):
        for column, height in enumerate(levels(intervals, until)):
            if height > 0:
                low, high = floor[column], floor[column] + height
                pen.line(
                    (LEFT + column, base - PANEL * low / cards, LEFT + column, base - PANEL * high / cards), colour
                )
                floor[column] = high
    pen.text((LEFT, top + 8), f"{name}: cards in use", INK, _font(13))


def _queue(pen: ImageDraw.ImageDraw, queue: list[float], top: int, tallest: float, until_s: float) -> None:
    base = top + GAP + QUEUE - 20
    high = base - top - 18
    _axes(pen, base - high, base, tallest, until_s, days=True)
    for column, height in enumerate(queue):
        pen.line((LEFT + column, base - 1, LEFT + column, base - high * height / tallest), "#475467")
    pen.text((LEFT, top), "waiting jobs", INK, _font(13))


def _axes(
    pen: ImageDraw.ImageDraw, top: float, base: float, maximum: float, until_s: float, *, days: bool = False
) -> None:
    """Grid lines with numbers at the left, and days below."""
    font = _font(11)
    step = next((s for s in STEPS if maximum / s <= 4), STEPS[-1])
    value = 0
    while value <= maximum:
        y = base - (base - top) * value / maximum
        pen.line((LEFT, y, WIDTH - RIGHT, y), GRID)
        pen.text((LEFT - 8, y), str(value), MUTED, font, anchor="rm")
        value += step
    if not days:
        return
    length = until_s / DAY
    every = next((s for s in (1, 2, 7, 14, 28, 91) if length / s <= 14), 364)
    for day in range(0, int(length) + 1, every):
        x = LEFT + (WIDTH - LEFT - RIGHT) * day / length
        pen.line((x, base, x, base + 4), MUTED)
        pen.text(
            (x, base + 6), f"day {day}", MUTED, font, anchor="lt" if not day else "rt" if day == int(length) else "mt"
        )


def _waiting(outcome: Outcome) -> list[Interval]:
    """When each job waited, after its preemptions too."""
    since: dict[int, float] = {}
    intervals: list[Interval] = []
    for span in sorted(outcome.spans, key=lambda s: s.began):
        begin = since.get(span.job, outcome.workload.works[span.job].arrival_s)
        intervals.append((begin, span.began, 1.0))
        since[span.job] = span.ended
    return intervals


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)
