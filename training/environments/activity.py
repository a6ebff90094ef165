"""Signs of life in what JupyterLab says. The job answers what it likes, so nothing is taken for granted. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

BUSY = "busy"
MAX_ROWS = 1000  # rows that are read


def of_kernels(answer: Any, moment: datetime) -> datetime | None:
    """When a kernel last computed; `moment` while one does."""
    rows = _rows(answer)
    if any(row.get("execution_state") == BUSY for row in rows):
        return moment
    return _newest((row.get("last_activity") for row in rows), moment)


def of_terminals(answer: Any, moment: datetime) -> datetime | None:
    """Return when a terminal last had input or output."""
    return _newest((row.get("last_activity") for row in _rows(answer)), moment)


def at(value: Any, moment: datetime) -> datetime | None:
    """Parse a time as Jupyter writes it (ISO 8601 in UTC), never later than `moment`; None for anything else."""
    if not isinstance(value, str) or len(value) > 40:
        return None
    try:
        parsed = datetime.fromisoformat(value)
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return min(parsed.astimezone(UTC), moment)
    except (ValueError, OverflowError):
        return None


def _rows(answer: Any) -> list[dict[str, Any]]:
    return [row for row in answer[:MAX_ROWS] if isinstance(row, dict)] if isinstance(answer, list) else []


def _newest(values: Iterable[Any], moment: datetime) -> datetime | None:
    return max((parsed for value in values if (parsed := at(value, moment))), default=None)
