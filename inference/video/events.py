"""Events of a watch: rows of what its program wrote, and a webhook for each where one is wanted."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.models import Delivery
from accounts.services import outbox
from accounts.services.notify import Kind, notify
from aiplatform.lib import files, wording
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.registry.prediction_lines import word
from inference.video import results
from inference.video.models import VideoAnalysis, VideoEvent
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir

AT_ONCE = 4 << 20  # bytes read in one pass
MAX_ROWS = 100_000  # of one analysis; its file holds all of them
Type = VideoEvent.Type
DIRECTIONS = ("in", "out", "")
KIND = Kind("camera", _("A camera that I analyze shows no new images"), "video")


def read_new(job: Job, attempt: Attempt | None = None) -> int:
    """Make rows of what the program wrote since the last call, and send them on; returns how many lines were read.

    A restored attempt writes some of them again, under the same keys: those stay as they are.
    """
    total = 0
    while (count := _pass(job, attempt.number if attempt else job.attempt_number)) > 0:
        total += count
    return total


@transaction.atomic
def _pass(job: Job, number: int) -> int:
    locked = VideoAnalysis.objects.select_for_update(of=("self",)).filter(job=job)
    analysis = locked.select_related("job__owner").first()
    if analysis is None or number < analysis.read_attempt:
        return 0
    begin = analysis.read_bytes if number == analysis.read_attempt else 0
    lines = _lines(job.pk, number, begin)
    if not lines:
        return 0
    rows = [row for row in (_row(analysis, line) for line in lines.splitlines()) if row]
    room = MAX_ROWS - analysis.events.count()
    VideoEvent.objects.bulk_create(rows[: max(room, 0)], ignore_conflicts=True, batch_size=500)
    VideoAnalysis.objects.filter(pk=analysis.pk).update(read_attempt=number, read_bytes=begin + len(lines))
    if analysis.webhook_url:
        for row in rows:
            _send(analysis, row)
    for row in rows:
        if row.type in (Type.FROZEN, Type.BLACK):
            _notify_owner(analysis, row)
    return lines.count(b"\n")


def _lines(job: int, attempt: int, begin: int) -> bytes:
    """Complete lines from a place of the file on."""
    try:
        with os.fdopen(files.open_beneath(RunDir.for_attempt(job, attempt).outputs, results.EVENTS), "rb") as file:
            file.seek(begin)
            read = file.read(AT_ONCE)
    except (OSError, files.OutsideRoot):
        return b""
    return read[: read.rfind(b"\n") + 1]


def _row(analysis: VideoAnalysis, line: bytes) -> VideoEvent | None:
    """Convert a line to an event; None if it is not valid, because a job may write any text."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or not is_sound(content):
        return None
    key, at, number = word(content.get("key"), 40), finite(content.get("at")), _to_count(content.get("object"))
    kind, direction = content.get("type"), content.get("way", "")
    if not key or at is None or number is None or kind not in Type.values or direction not in DIRECTIONS:
        return None
    kinds = analysis.params.get("class_names", {})
    area = content.get("area")
    return VideoEvent(
        analysis=analysis,
        key=key,
        at=at,
        type=kind,
        place=word(content.get("place"), 40),
        way=direction,
        object=number,
        class_id=(class_id := _to_count(content.get("class_id"))),
        class_name=str(kinds.get(str(class_id), ""))[:100] if class_id is not None else "",
        score=finite(content.get("score")),
        area=[finite(edge) or 0.0 for edge in area[:4]] if isinstance(area, list) else [],
        seconds=finite(content.get("seconds")),
        happened_at=_moment(content.get("time")),
    )


def _to_count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def _moment(value: Any) -> datetime | None:
    seconds = finite(value)
    return datetime.fromtimestamp(seconds, UTC) if seconds is not None and 0 <= seconds < 2**33 else None


def facts_of(event: VideoEvent) -> Mapping[str, Any]:
    """Return the fields of an event that a webhook sends with its sentence."""
    return {
        "analysis": event.analysis_id,
        "key": event.key,
        "at": event.at,
        "place": event.place,
        "way": event.way,
        "object": event.object,
        "class": event.class_name or "–",
        "score": event.score,
        "area": event.area,
        "seconds": event.seconds,
        "happened_at": event.happened_at,
    }


def _notify_owner(analysis: VideoAnalysis, event: VideoEvent) -> None:
    """Notify the owner that a camera hangs, once for each time."""
    notify(
        analysis.job.owner,
        KIND.name,
        title=wording.message("video.hangs", name=analysis.job.name),
        text=wording.message(f"video.{event.type}", **facts_of(event)),
        url=reverse("inference:video-detail", args=[analysis.pk]),
        key=f"camera-{analysis.pk}-{event.key}",
    )


def _send(analysis: VideoAnalysis, event: VideoEvent) -> None:
    outbox.add(
        Delivery.Channel.WEBHOOK,
        analysis.webhook_url,
        kind=f"video_{event.type}",
        key=f"video-{analysis.pk}-{event.key}",
        title=wording.message(f"video.{event.type}", **facts_of(event)),
        url=reverse("inference:video-detail", args=[analysis.pk]),
        secret=analysis.webhook_secret,
    )
