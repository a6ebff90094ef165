"""Walkers whose ways are known, and how well a tracker follows them: MOTA (Bernardin and Stiefelhagen 2008), IDF1
(Ristani et al. 2016)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from inference.video.watcher.tracker import Settings, Tracker, overlaps

RATE = 30
FITS = 0.5  # overlap from which a box is that of a walker


@dataclass(frozen=True)
class Moment:
    """One picture: where all walkers are, and what a detector says of it."""

    at: float
    truth: np.ndarray
    boxes: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Figures:
    mota: float
    idf1: float
    switches: int


def scene(seed: int, *, people: int, frames: int = 300, every: int = 1) -> Iterator[Moment]:
    """Walkers that turn, hide behind each other (missed or scored low), jitter; and false boxes.

    Args:
        every: of the pictures only each n-th is seen.
    """
    rng, (width, height) = np.random.default_rng(seed), (1280, 720)
    position = rng.uniform([100, 100], [width - 100, height - 100], (people, 2))
    speed = rng.normal(0, 3.0, (people, 2))
    size = np.column_stack([rng.uniform(35, 60, people), rng.uniform(90, 150, people)])
    for number in range(frames):
        speed = np.clip(speed + rng.normal(0, 0.25, speed.shape), -6, 6)
        position = position + speed
        for axis, edge in enumerate((width, height)):
            out = (position[:, axis] < 40) | (position[:, axis] > edge - 40)
            speed[out, axis] *= -1
            position[:, axis] = np.clip(position[:, axis], 40, edge - 40)
        truth = np.column_stack([position - size / 2, position + size / 2])
        if number % every:
            continue
        hidden = _hidden(truth, position, size)
        score = np.clip(rng.normal(0.85, 0.08, people) - hidden * 0.8, 0.02, 0.99)
        visible = (rng.random(people) > 0.03 + hidden * 0.5) & (score > 0.1)
        wrong = rng.uniform([50, 50], [width - 50, height - 50], (rng.poisson(0.7), 2))
        margin = np.array([20, 50])
        boxes = np.vstack(
            [truth[visible] + rng.normal(0, 2.5, (visible.sum(), 4)), np.column_stack([wrong - margin, wrong + margin])]
        )
        scores = np.concatenate([score[visible], rng.uniform(0.1, 0.65, len(wrong))])
        yield Moment(number / RATE, truth, boxes, scores)


def _hidden(truth: np.ndarray, position: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Which share of each walker is behind one that is nearer, so lower in the picture."""
    near = np.maximum(truth[:, None, :2], truth[None, :, :2])
    far = np.minimum(truth[:, None, 2:], truth[None, :, 2:])
    share = np.prod(np.clip(far - near, 0, None), 2) / np.prod(size, 1)[:, None]
    share[position[None, :, 1] <= position[:, None, 1]] = 0
    return share.max(1)


def judged(moments: list[Moment], settings: Settings | None = None) -> Figures:
    """How well a tracker with these settings follows them."""
    tracker, people = Tracker(settings or Settings()), len(moments[0].truth)
    misses = wrong = switches = total = 0
    last: dict[int, int] = {}
    together: dict[tuple[int, int], int] = {}
    predictions = 0
    for moment in moments:
        kinds = np.zeros(len(moment.boxes), np.int64)
        numbers = tracker.update(moment.boxes, moment.scores, kinds, moment.at)
        boxes, numbers = moment.boxes[numbers > 0], numbers[numbers > 0]
        total, predictions = total + people, predictions + len(numbers)
        shared = overlaps(moment.truth, boxes)
        fits = shared >= FITS
        for person, column in zip(*np.nonzero(fits), strict=True):
            key = (int(person), int(numbers[column]))
            together[key] = together.get(key, 0) + 1
        stays = np.array([[last.get(person) == number for number in numbers] for person in range(people)], bool)
        value = np.where(fits, shared + 10 * stays.reshape(fits.shape), 0)  # who was matched before stays matched
        rows, columns = linear_sum_assignment(-value)
        pairs = [(row, column) for row, column in zip(rows, columns, strict=True) if value[row, column] > 0]
        for person, column in pairs:
            number = int(numbers[column])
            switches += last.get(person, number) != number
            last[person] = number
        misses, wrong = misses + people - len(pairs), wrong + len(numbers) - len(pairs)
    table = np.zeros((people, tracker.count + 1))
    for (person, number), count in together.items():
        table[person, number] = count
    rows, columns = linear_sum_assignment(-table)
    right = table[rows, columns].sum()
    return Figures(1 - (misses + wrong + switches) / total, 2 * right / (total + predictions), switches)
