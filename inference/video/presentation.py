"""What the page of an analysis shows: figures, events in their order, marks on the timeline."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.lib import times
from aiplatform.lib.downloads import csv_answer
from aiplatform.lib.errors import Invalid
from inference.video import results
from inference.video.models import VideoAnalysis, VideoEvent

MAX_EVENTS = 200  # of the list on the page; the downloads hold all
MAX_MARKS = 400
MAX_INTERVALS = 60
DIRECTION_LABELS = {"in": gettext_lazy("in"), "out": gettext_lazy("out"), "": ""}


def build_context(analysis: VideoAnalysis) -> dict[str, Any]:
    """Return results and events of an analysis, as far as it has progressed."""
    summary = results.load(analysis)
    rows, intervals = analysis.events.all(), _intervals(summary)
    total = rows.count()
    if analysis.is_stream:  # runs for days: users look for what is new
        rows, intervals = rows.reverse(), intervals[::-1]
    events = [_event(event) for event in rows[:MAX_EVENTS]]
    length = max(summary.get("duration_s") or 0.0, summary.get("at", 0.0), 0.001)
    drawn = {name: analysis.params.get(name, []) for name in ("lines", "zones")}
    return {
        "found": summary,
        "events": events,
        "events_total": total,
        "marks": _marks(analysis, total, length),
        "length": length,
        "intervals": intervals[:MAX_INTERVALS],
        "intervals_total": len(summary.get("intervals", [])),
        "drawn": drawn,
        "silent_since": times.moment(summary["silent_since"]) if summary.get("silent_since") else None,
        "still_since": times.moment(summary["still_since"]) if summary.get("still_since") else None,
        "has_first": _has(analysis, results.FIRST),
        "has_latest": _has(analysis, results.LATEST),
        "has_film": summary.get("film", False) and _has(analysis, results.FILM),
    }


def _has(analysis: VideoAnalysis, name: str) -> bool:
    return (results.outputs(analysis) / name).is_file()


def _event(event: VideoEvent) -> dict[str, Any]:
    return {
        "row": event,
        "clock": clock(event.at),
        "way_word": DIRECTION_LABELS.get(event.way, ""),
    }


def clock(at: float) -> str:
    """Seconds as 1:02:03.4."""
    minutes, seconds = divmod(max(at, 0.0), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02d}:{seconds:04.1f}" if hours else f"{minutes}:{seconds:04.1f}"


def _marks(analysis: VideoAnalysis, total: int, length: float) -> list[dict[str, Any]]:
    """Where on the timeline something happened; of many events an even choice."""
    rows = list(analysis.events.values_list("at", "type"))
    step = max(1, -(-total // MAX_MARKS))
    return [{"x": round(1000 * at / length, 1), "type": kind} for at, kind in rows[::step]]


def _intervals(summary: dict[str, Any]) -> list[dict[str, Any]]:
    names = [line["name"] for line in summary.get("lines", [])], [zone["name"] for zone in summary.get("zones", [])]
    return [
        {
            "clock": clock(row["at"]),
            "most": row["most"],
            "new": row["new"],
            "lines": [row["lines"].get(name, {"in": 0, "out": 0}) for name in names[0]],
            "zones": [row["zones"].get(name, 0) for name in names[1]],
        }
        for row in summary.get("intervals", [])
    ]


def csv_of(analysis: VideoAnalysis) -> HttpResponse:
    """All events that have rows, as a table."""
    header = [
        "at_s",
        "type",
        "place",
        "way",
        "class",
        "object",
        "score",
        "seconds",
        "happened_at",
        "x1",
        "y1",
        "x2",
        "y2",
    ]
    rows = (
        [
            event.at, event.type, event.place, event.way, event.class_name, event.object, event.score, event.seconds,
            event.happened_at and event.happened_at.isoformat(), *event.area,
        ]
        for event in analysis.events.iterator()
    )  # fmt: skip
    return csv_answer(f"video-{analysis.pk}-events.csv", header, rows)


def parsed(text: str) -> Any:
    """Lines and zones as the page sends them.

    Raises:
        Invalid: it is no JSON.
    """
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        raise Invalid(_("Expected JSON with lines and zones."), field="places") from None
