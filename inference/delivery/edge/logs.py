"""The last lines of devices, as they send them: their own words, within bounds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.utils.timezone import now

from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.delivery.edge.models import EdgeDevice, EdgeLog

MAX_BYTES = 64 << 10  # of a device, the newest
A_DAY = 256 << 10  # taken of a device
MAX_LINES = 2000  # of one report
MAX_LENGTH = 500  # characters of a line
LATEST = 2**53  # ms since 1970; larger ones are no exact numbers in JSON


def store(device: EdgeDevice, entries: Any) -> None:
    """Store new lines; lines of a report that arrives twice are stored once."""
    if not isinstance(entries, list) or not entries:
        return
    with transaction.atomic():
        EdgeLog.objects.get_or_create(device=device)
        log = EdgeLog.objects.select_for_update().get(device=device)
        lines = _new(entries[:MAX_LINES], log.upto)
        if not lines:
            return
        today = now().date()
        if log.day != today:
            log.day, log.bytes_today, log.left_out = today, 0, 0
        for number, text in lines:
            log.upto = number
            if log.bytes_today + _bytes(text) > A_DAY:
                log.left_out += 1
                continue
            log.bytes_today += _bytes(text)
            log.lines.append([number, text])
        total = sum(_bytes(text) for _number, text in log.lines)
        while total > MAX_BYTES:
            total -= _bytes(log.lines.pop(0)[1])
        log.save()


def _new(entries: list[Any], last_number: int) -> list[tuple[int, str]]:
    """Return (number, text) of the lines after `last_number`, in order; invalid entries are skipped."""
    lines: list[tuple[int, str]] = []
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 2:
            continue
        number, text = finite(entry[0]), entry[1]
        if number is None or not last_number < number < LATEST or not isinstance(text, str) or not is_sound(text):
            continue
        lines.append((int(number), " ".join(text.split())[:MAX_LENGTH]))
        last_number = int(number)
    return [line for line in lines if line[1]]


def _bytes(text: str) -> int:
    return len(text.encode()) + 16  # with its number


def for_device(device: EdgeDevice) -> tuple[list[dict[str, Any]], int]:
    """Return the lines of a device, newest last, each with the time of its clock, and how many were left out today."""
    log = EdgeLog.objects.filter(device=device).first()
    if log is None:
        return [], 0
    lines = [{"at": _at(number), "text": text} for number, text in log.lines]
    return lines, log.left_out if log.day == now().date() else 0


def _at(number: int) -> datetime | None:
    """The time of a line; None where the clock of the device says what no calendar has."""
    try:
        return datetime.fromtimestamp(number / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
