"""When resource groups are kept for their kinds of jobs, and which nodes are closed to others. Pure."""

from collections.abc import Sequence

from workers.planning.planner.snapshot import ResourceGroup, Snapshot, Window

DAY = 24 * 60
WEEK = 7 * DAY
_NOWHERE: frozenset[int] = frozenset()
_THURSDAY = 3  # the weekday on which unix time begins


def is_open(windows: Sequence[Window], now: float, utc_offset_s: float) -> bool:
    """Whether one of the windows runs at `now`; no windows means always."""
    if not windows:
        return True
    minute = _minute(now, utc_offset_s)
    return any(begin + shift <= minute < end + shift for begin, end, shift in _spans(windows))


def closes_at(windows: Sequence[Window], now: float, utc_offset_s: float) -> float | None:
    """When windows that run at `now` end, in unix seconds; None if they never do or none runs."""
    if not windows:
        return None
    minute = _minute(now, utc_offset_s)
    reached = minute
    for _ in range(2 * len(windows) * 7):  # windows that touch or overlap go on as one
        ends = [end + shift for begin, end, shift in _spans(windows) if begin + shift <= reached < end + shift]
        if not ends:
            break
        reached = max(ends)
        if reached - minute >= WEEK:
            return None
    return None if reached == minute else now + (reached - minute) * 60.0


class Openings:
    """Which nodes are closed to which kinds of jobs at one moment."""

    def __init__(self, snapshot: Snapshot, now: float) -> None:
        self._now, self._offset = now, snapshot.utc_offset_s
        self.active = tuple(g for g in snapshot.groups if is_open(g.windows, now, snapshot.utc_offset_s))
        self._closed: dict[str, frozenset[int]] = {}

    def closed_to(self, kind: str) -> frozenset[int]:
        """Node ids on which a job of this kind may not start now."""
        if kind not in self._closed:
            nodes = (g.nodes for g in self.active if kind not in g.kinds)
            self._closed[kind] = frozenset().union(*nodes)
        return self._closed[kind]

    def kept_for(self, kind: str) -> frozenset[int]:
        """Node ids that are kept for jobs of this kind now."""
        if not self.active:
            return _NOWHERE
        return frozenset().union(*(g.nodes for g in self.active if kind in g.kinds))

    def closing(self, kind: str) -> tuple[ResourceGroup, float | None] | None:
        """A group that is closed to this kind and the moment at which it opens, or None."""
        closed = [(closes_at(g.windows, self._now, self._offset), g) for g in self.active if kind not in g.kinds]
        if not closed:
            return None
        opens, group = min(closed, key=lambda pair: (pair[0] is None, pair[0] or 0.0, pair[1].id))
        return group, opens


def _minute(now: float, utc_offset_s: float) -> float:
    """Minutes since Monday 00:00 of the site's clocks."""
    return ((now + utc_offset_s) / 60.0 + _THURSDAY * DAY) % WEEK


def _spans(windows: Sequence[Window]) -> list[tuple[int, int, int]]:
    """(begin, end, shift) in minutes of the week; shifted by a week for spans that run over its end."""
    spans = []
    for window in windows:
        length = (window.ends - window.begins) % DAY or DAY
        for day in sorted(window.weekdays):
            begin = day * DAY + window.begins
            spans += [(begin, begin + length, shift) for shift in (-WEEK, 0, WEEK)]
    return spans
