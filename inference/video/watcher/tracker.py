"""Follow boxes from picture to picture.

Two rounds of matching by overlap, sure boxes first and doubtful ones after them (ByteTrack, Zhang et al. 2022), over a
Kalman filter of constant velocity (SORT, Bewley et al. 2016) that takes the time between two pictures as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
STEP_S = 1 / 30  # what the noise below is said for
JUST_NOW = 2.5  # times the last step: doubtful boxes only continue what was seen so lately


@dataclass(frozen=True)
class Settings:
    """How tracks begin, go on and end.

    Args:
        sure: score from which a box begins a track.
        doubtful: score from which a box continues a track.
        overlap: least overlap (IoU) with where a sure box is expected.
        overlap_doubtful: the same of a doubtful one.
        confirm: boxes before a track gets its number, so that a flicker never counts.
        lost_s: how long a track is expected back.
        noise_place, noise_speed: of a box's height, in a thirtieth of a second.
    """

    sure: float = 0.3
    doubtful: float = 0.1
    overlap: float = 0.2
    overlap_doubtful: float = 0.5
    confirm: int = 2
    lost_s: float = 1.0
    noise_place: float = 1 / 20
    noise_speed: float = 1 / 160


class Tracker:
    """All that is followed in one picture after the other."""

    def __init__(self, settings: Settings = Settings()) -> None:
        self.settings = settings
        self.count = 0  # numbers given so far
        self.at: float | None = None
        self.states: Floats = np.zeros((0, 8))  # centre x and y, width, height; their changes in STEP_S
        self.spreads: Floats = np.zeros((0, 8, 8))
        self.kinds: Ints = np.zeros(0, np.int64)
        self.numbers: Ints = np.zeros(0, np.int64)  # 0: not confirmed yet
        self.hits: Ints = np.zeros(0, np.int64)
        self.seen: Floats = np.zeros(0)

    def update(self, boxes: Floats, scores: Floats, kinds: Ints, at: float) -> Ints:
        """Give each box the number of its track; 0 where it has none yet.

        Args:
            boxes: [n, 4] x1 y1 x2 y2.
            kinds: class of each; a track keeps its own.
            at: time of the picture in seconds; after pictures that were left out it is simply later.
        """
        settings, steps = self.settings, 1.0
        if self.at is not None:
            steps = max((at - self.at) / STEP_S, 1e-3)
        self.at = at
        self._predict(steps)
        track_numbers = np.zeros(len(boxes), np.int64)
        centred = _centred(boxes)
        sure = np.flatnonzero(scores >= settings.sure)
        doubtful = np.flatnonzero((scores < settings.sure) & (scores >= settings.doubtful))
        firm, young = np.flatnonzero(self.numbers > 0), np.flatnonzero(self.numbers == 0)

        def match(tracks: Ints, places: Ints, least: float) -> tuple[Ints, Ints]:
            rows, columns = self._pairs(tracks, places, boxes, kinds, least)
            self._correct(tracks[rows], centred[places[columns]], at)
            track_numbers[places[columns]] = self.numbers[tracks[rows]]
            return np.delete(tracks, rows), np.delete(places, columns)

        missed, left = match(firm, sure, settings.overlap)
        match(missed[at - self.seen[missed] < JUST_NOW * STEP_S * steps], doubtful, settings.overlap_doubtful)
        unmatched, left = match(young, left, settings.overlap)
        keep = at - self.seen <= settings.lost_s
        keep[unmatched] = False
        self._filter_tracks(keep)
        self._start_tracks(centred[left], kinds[left], at)
        return track_numbers

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON; numbers come back as they were."""
        arrays = {name: getattr(self, name).tolist() for name in _ARRAYS}
        return {"count": self.count, "at": self.at, **arrays}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of `as_json`."""
        self.count, self.at = state["count"], state["at"]
        for name, shape in _ARRAYS.items():
            own = getattr(self, name)
            setattr(self, name, np.array(state[name], own.dtype).reshape(-1, *shape))

    def _predict(self, steps: float) -> None:
        if not len(self.states):
            return
        move = np.eye(8)
        move[:4, 4:] = np.eye(4) * steps
        self.states = self.states @ move.T
        height = np.maximum(self.states[:, 3:4], 1)
        noise = np.repeat(height, 8, 1) * ([self.settings.noise_place] * 4 + [self.settings.noise_speed] * 4)
        self.spreads = move @ self.spreads @ move.T
        self.spreads[:, range(8), range(8)] += noise**2 * steps

    def _pairs(self, tracks: Ints, places: Ints, boxes: Floats, kinds: Ints, least: float) -> tuple[Ints, Ints]:
        if not len(tracks) or not len(places):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        centre, half = self.states[tracks, :2], self.states[tracks, 2:4] / 2
        shared = overlaps(np.concatenate([centre - half, centre + half], 1), boxes[places])
        shared[self.kinds[tracks][:, None] != kinds[places][None]] = 0
        shared[shared < least] = 0
        rows, columns = linear_sum_assignment(-shared)
        good = shared[rows, columns] > 0
        return rows[good], columns[good]

    def _correct(self, tracks: Ints, boxes: Floats, at: float) -> None:
        if not len(tracks):
            return
        noise = (self.settings.noise_place * np.maximum(boxes[:, 3], 1)) ** 2
        spreads = self.spreads[tracks]
        inner = spreads[:, :4, :4] + np.eye(4) * noise[:, None, None]
        gain = np.linalg.solve(inner, spreads[:, :4, :]).transpose(0, 2, 1)
        apart = boxes - self.states[tracks, :4]
        self.states[tracks] += (gain @ apart[:, :, None])[:, :, 0]
        self.spreads[tracks] = spreads - gain @ spreads[:, :4]
        self.hits[tracks] += 1
        self.seen[tracks] = at
        for track in tracks[(self.hits[tracks] >= self.settings.confirm) & (self.numbers[tracks] == 0)]:
            self.count += 1
            self.numbers[track] = self.count

    def _start_tracks(self, boxes: Floats, kinds: Ints, at: float) -> None:
        if not len(boxes):
            return
        height = np.maximum(boxes[:, 3:4], 1)
        deviations = np.repeat(height, 8, 1) * (
            [2 * self.settings.noise_place] * 4 + [10 * self.settings.noise_speed] * 4
        )
        self.states = np.concatenate([self.states, np.concatenate([boxes, np.zeros_like(boxes)], 1)])
        self.spreads = np.concatenate([self.spreads, np.eye(8) * (deviations**2)[:, :, None]])
        self.kinds = np.concatenate([self.kinds, kinds])
        self.numbers = np.concatenate([self.numbers, np.zeros(len(boxes), np.int64)])
        self.hits = np.concatenate([self.hits, np.ones(len(boxes), np.int64)])
        self.seen = np.concatenate([self.seen, np.full(len(boxes), at)])

    def _filter_tracks(self, which: NDArray[np.bool_]) -> None:
        if not which.all():
            for name in _ARRAYS:
                setattr(self, name, getattr(self, name)[which])


_ARRAYS: Mapping[str, tuple[int, ...]] = {
    "states": (8,), "spreads": (8, 8), "kinds": (), "numbers": (), "hits": (), "seen": (),
}  # fmt: skip


def _centred(boxes: Floats) -> Floats:
    boxes = np.asarray(boxes, np.float64).reshape(-1, 4)
    return np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], 1)


def overlaps(ones: Floats, others: Floats) -> Floats:
    """Overlap (IoU) of each box with each of the others."""
    near = np.maximum(ones[:, None, :2], others[None, :, :2])
    far = np.minimum(ones[:, None, 2:], others[None, :, 2:])
    shared = np.prod(np.clip(far - near, 0, None), 2)
    areas = [np.prod(np.clip(boxes[:, 2:] - boxes[:, :2], 0, None), 1) for boxes in (ones, others)]
    union = areas[0][:, None] + areas[1][None] - shared
    return np.asarray(shared / np.maximum(union, 1e-9))
