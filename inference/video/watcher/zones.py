"""Lines and zones in the picture: what crosses, enters, leaves and stays.

An object is where its foot is, the middle of the lower side of its box. Only objects with a number count: boxes that
are not followed yet share no identity. Points are shares of the picture's sides, 0..1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Point = tuple[float, float]
IN, OUT = "in", "out"
CROSSED, ENTERED, LEFT, LOITERED = "crossed", "entered", "left", "loitered"
ROUNDING_S = 1e-6  # by which times that are equal may differ
FORGOTTEN_S = 10.0  # after so long a number does not come back


@dataclass(frozen=True)
class Foot:
    """Position of a tracked object."""

    number: int
    point: Point


@dataclass
class Line:
    """Counts crossings: in from the left to the right side, seen from start to end, else out.

    Args:
        wait_s: an object that moves back and forth on the line is counted once in so many seconds.
    """

    name: str
    start: Point
    end: Point
    wait_s: float = 0.5
    counts: dict[str, int] = field(default_factory=lambda: {IN: 0, OUT: 0})
    tracks: dict[int, list[Any]] = field(default_factory=dict)  # number → side, foot, when it last crossed, last seen

    def update(self, feet: Sequence[Foot], at: float) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (number, facts) of each crossing."""
        for foot in feet:
            side = self._side(foot.point)
            track = self.tracks.get(foot.number)
            if track is None:
                self.tracks[foot.number] = [side, foot.point, None, at]
                continue
            track[3] = at
            if track[0] == side:
                track[1] = foot.point
                continue
            if track[2] is not None and at - track[2] < self.wait_s:
                continue
            if self._between(track[1], foot.point):
                direction = IN if side else OUT
                self.counts[direction] += 1
                track[2] = at
                yield foot.number, {"type": CROSSED, "place": self.name, "way": direction}
            track[0], track[1] = side, foot.point
        for number in [number for number, track in self.tracks.items() if at - track[3] > FORGOTTEN_S]:
            del self.tracks[number]

    def _side(self, point: Point) -> bool:
        return _turn(self.start, self.end, point) > 0

    def _between(self, before: Point, now: Point) -> bool:
        """Whether the path from one point to the other crosses the line segment itself, not its extension."""
        first, second = _turn(before, now, self.start), _turn(before, now, self.end)
        return (first <= 0 <= second) or (second <= 0 <= first)

    def as_json(self) -> dict[str, Any]:
        return {"counts": self.counts, "known": list(self.tracks.items())}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.counts = dict(state["counts"])
        self.tracks = {number: [side, tuple(foot), *rest] for number, (side, foot, *rest) in state["known"]}


@dataclass
class Visit:
    """One object in a zone."""

    since: float
    last: float
    entered: bool = False  # it entered, and was not there by a flicker
    loitered: bool = False


@dataclass
class Zone:
    """Knows what is in a polygon.

    Args:
        loiter_s: an object loiters after so many seconds in it; 0: never.
        settle_s: who is in it for less has not entered.
        gap_s: who is out of it, or unseen, for less has not left.
    """

    name: str
    points: tuple[Point, ...]
    loiter_s: float = 0.0
    settle_s: float = 0.2
    gap_s: float = 1.0
    counts: dict[str, int] = field(default_factory=lambda: {ENTERED: 0, LEFT: 0, LOITERED: 0})
    visits: dict[int, Visit] = field(default_factory=dict)

    @property
    def inside(self) -> int:
        """How many are in it now."""
        return sum(visit.entered for visit in self.visits.values())

    def update(self, feet: Sequence[Foot], at: float) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield (number, facts) of who entered, left, or is in it for long."""
        for foot in feet:
            if not self.holds(foot.point):
                continue
            visit = self.visits.setdefault(foot.number, Visit(at, at))
            visit.last = at
            if not visit.entered and at - visit.since >= self.settle_s - ROUNDING_S:
                visit.entered = True
                yield foot.number, self._record(ENTERED)
            if self.loiter_s and not visit.loitered and at - visit.since >= self.loiter_s - ROUNDING_S:
                visit.loitered = True
                yield foot.number, self._record(LOITERED, seconds=round(at - visit.since, 3))
        for number, visit in list(self.visits.items()):
            if at - visit.last >= self.gap_s - ROUNDING_S:
                del self.visits[number]
                if visit.entered:
                    yield number, self._record(LEFT, seconds=round(visit.last - visit.since, 3))

    def holds(self, point: Point) -> bool:
        """Whether a point is in the polygon: a ray from it meets the sides an odd number of times."""
        x, y = point
        inside = False
        for (x1, y1), (x2, y2) in zip(self.points, (*self.points[1:], self.points[0]), strict=True):
            if (y1 > y) != (y2 > y) and x < x1 + (y - y1) / (y2 - y1) * (x2 - x1):
                inside = not inside
        return inside

    def _record(self, what: str, **facts: Any) -> dict[str, Any]:
        self.counts[what] += 1
        return {"type": what, "place": self.name, **facts}

    def as_json(self) -> dict[str, Any]:
        visits = [
            (number, visit.since, visit.last, visit.entered, visit.loitered) for number, visit in self.visits.items()
        ]
        return {"counts": self.counts, "visits": visits}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.counts = dict(state["counts"])
        self.visits = {number: Visit(*rest) for number, *rest in state["visits"]}


def _turn(start: Point, end: Point, point: Point) -> float:
    """Return a value above 0 where `point` is on the right, seen from start to end (y grows downwards)."""
    return (end[0] - start[0]) * (point[1] - start[1]) - (end[1] - start[1]) * (point[0] - start[0])


def line_of(entry: Mapping[str, Any]) -> Line:
    """Convert a stored line: {"name", "points": [[x, y], [x, y]]}."""
    start, end = (_point(point) for point in entry["points"])
    return Line(str(entry["name"]), start, end)


def zone_of(entry: Mapping[str, Any]) -> Zone:
    """Convert a stored zone: {"name", "points": [[x, y], …], "loiter_s"}."""
    points = tuple(_point(point) for point in entry["points"])
    return Zone(str(entry["name"]), points, float(entry.get("loiter_s") or 0))


def _point(pair: Sequence[float]) -> Point:
    return float(pair[0]), float(pair[1])
