"""Values in the outputs of a program, which may contain anything: each is checked when it is read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiplatform.lib import files
from workers.core.runs import RunDir


def folder_of(row: Any) -> Path:
    """Return the outputs of the attempt that was published, or of the newest one."""
    return RunDir.for_attempt(row.job_id, row.published_attempt or row.job.attempt_number).outputs


def read_json(folder: Path, name: str, *, max_bytes: int) -> Mapping[str, Any]:
    """Return the object in a JSON file of the outputs; {} if there is none."""
    try:
        with os.fdopen(files.open_beneath(folder, name), "rb") as file:
            document = json.loads(file.read(max_bytes))
    except (OSError, ValueError, RecursionError, files.OutsideRoot):
        return {}
    return table(document)


def table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def entries(value: Any, kind: type = dict) -> list[Any]:
    """Return the entries of a list that are of `kind`."""
    return [entry for entry in value if isinstance(entry, kind)] if isinstance(value, list) else []
