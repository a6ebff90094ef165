"""What a watch counts: events with numbers of their own, and figures of each interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inference.video.watcher.detect import Found
from inference.video.watcher.tracker import Ints
from inference.video.watcher.zones import IN, OUT, Foot, Line, Zone

MAX_INTERVALS = 10_000


class Counts:
    """Lines, zones, objects so far, and the figures of each interval.

    Args:
        size: width and height of the source.
        interval_s: how much time figures are put together.
    """

    def __init__(self, lines: Sequence[Line], zones: Sequence[Zone], size: tuple[int, int], interval_s: float) -> None:
        self.lines, self.zones, self.size, self.interval_s = lines, zones, size, interval_s
        self.events = 0
        self.objects: dict[int, int] = {}  # class → numbers given
        self.known = 0  # the highest number that was counted
        self.intervals: dict[int, dict[str, Any]] = {}

    def update(self, detections: Found, numbers: Ints, at: float) -> list[dict[str, Any]]:
        """Count an image; returns its events."""
        followed = np.flatnonzero(numbers)
        feet = [
            Foot(int(numbers[row]), (float((box[0] + box[2]) / 2) / self.size[0], float(box[3]) / self.size[1]))
            for row, box in zip(followed, detections.boxes[followed], strict=True)
        ]
        row_of = {int(numbers[row]): int(row) for row in followed}
        new = 0
        for number in sorted(row_of):
            if number > self.known:
                kind = int(detections.kinds[row_of[number]])
                self.objects[kind] = self.objects.get(kind, 0) + 1
                self.known, new = number, new + 1
        events = []
        for area in self._places():
            for number, facts in area.update(feet, at):
                self.events += 1
                events.append(self._event(facts, number, row_of.get(number), detections, at))
        self._add(len(followed), new, at, events)
        return events

    def source_event(self, kind: str, at: float, seconds: float) -> dict[str, Any]:
        """Return an event of the source itself, without object and place."""
        self.events += 1
        return {"number": self.events, "at": round(at, 3), "object": 0, "type": kind, "place": "", "seconds": seconds}

    def _places(self) -> list[Line | Zone]:
        return [*self.lines, *self.zones]

    def _event(
        self, facts: Mapping[str, Any], number: int, row: int | None, detections: Found, at: float
    ) -> dict[str, Any]:
        event = {"number": self.events, "at": round(at, 3), "object": number, **facts}
        if row is not None:
            width, height = self.size
            box = detections.boxes[row] / np.array([width, height, width, height])
            event |= {
                "class_id": int(detections.kinds[row]),
                "score": round(float(detections.scores[row]), 4),
                "area": [round(float(edge), 4) for edge in box],
            }
        return event

    def _add(self, objects: int, new: int, at: float, events: Sequence[Mapping[str, Any]]) -> None:
        index = int(at // self.interval_s)
        own = self.intervals.get(index)
        if own is None:
            own = self.intervals[index] = {"most": 0, "new": 0, "lines": {}, "zones": {}}
            while len(self.intervals) > MAX_INTERVALS:
                del self.intervals[min(self.intervals)]
        own["most"] = max(own["most"], objects)
        own["new"] += new
        for event in events:
            if "way" in event:
                counted = own["lines"].setdefault(event["place"], {IN: 0, OUT: 0})
                counted[event["way"]] += 1
        for zone in self.zones:
            own["zones"][zone.name] = max(own["zones"].get(zone.name, 0), zone.inside)

    def summary(self) -> dict[str, Any]:
        """What is shown of it."""
        return {
            "events": self.events,
            "objects": [{"class_id": kind, "count": count} for kind, count in sorted(self.objects.items())],
            "lines": [{"name": line.name, **line.counts} for line in self.lines],
            "zones": [{"name": zone.name, "inside": zone.inside, **zone.counts} for zone in self.zones],
            "interval_s": self.interval_s,
            "intervals": [{"at": index * self.interval_s, **own} for index, own in sorted(self.intervals.items())],
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "events": self.events,
            "known": self.known,
            "objects": list(self.objects.items()),
            "intervals": list(self.intervals.items()),
            "lines": [line.as_json() for line in self.lines],
            "zones": [zone.as_json() for zone in self.zones],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.events, self.known = state["events"], state["known"]
        self.objects, self.intervals = dict(state["objects"]), dict(state["intervals"])
        for area, area_state in zip(self._places(), (*state["lines"], *state["zones"]), strict=True):
            area.restore(area_state)
