"""What the machines' device logs say of a job's cards, as the agents wrote it down beside the job's log."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from accounts.models import User
from aiplatform.lib import files, times
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.jobs import job_tabs
from workers.jobs.job_page import Panel

FOLDER = "device_errors"
MAX_BYTES = 256 * 1024
SHOWN = 100


@dataclass(frozen=True)
class DeviceError:
    """One line: when, on which machine, of which card, the driver's number where it gave one, and its words."""

    at: datetime
    node: str
    card: str
    code: int | None
    text: str


def list_errors(job: Job) -> list[DeviceError]:
    """Errors of the devices of the newest attempt, newest first."""
    folder = RunDir.for_attempt(job.pk, job.attempt_number).path / FOLDER
    if not job.attempt_number or not folder.is_dir():
        return []
    errors = [error for path in sorted(folder.glob("*.jsonl")) for error in _read(path)]
    return sorted(errors, key=lambda error: error.at, reverse=True)[:SHOWN]


def context(job: Job, user: User) -> dict[str, Any] | None:
    """What `_device_errors_panel.html` shows; None where there are none."""
    errors = list_errors(job)
    return {"errors": errors} if errors else None


def _read(path: Path) -> list[DeviceError]:
    try:
        with os.fdopen(files.open_beneath(path.parent, path.name), "rb") as file:
            lines = file.read(MAX_BYTES).split(b"\n")
    except (OSError, files.OutsideRoot):
        return []
    errors = []
    for line in lines:
        try:
            row = json.loads(line)
            text = str(row["text"])
            errors.append(DeviceError(times.moment(row["at"]), path.stem, str(row["card"]), row["code"], text))
        except (ValueError, KeyError, TypeError):  # the last one may be half written
            continue
    return errors


PANEL = Panel("device-errors", "workers/_device_errors_panel.html", context, 50, job_tabs.CONSOLE)
