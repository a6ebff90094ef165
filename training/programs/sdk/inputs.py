"""Parameters and datasets of a job."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from training.presets.run import Refused, current, log_line


def in_job() -> bool:
    """Return whether the script runs in a job of the platform."""
    return current().metrics_file is not None


def params(defaults: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the parameters of the job, laid over `defaults`; outside of a job the defaults alone.

    values = params({"lr": 0.01, "epochs": 10})
    """
    try:
        chosen = current().params()
    except (Refused, OSError) as error:
        log_line(f"aip.params: {error}")
        chosen = {}
    return {**(defaults or {}), **chosen}


def dataset(default: str | os.PathLike[str] = "dataset") -> Path:
    """Return the folder of the first dataset of the job; outside of a job `default`. Read-only in a job."""
    folder = os.environ.get("AIP_DATASET_DIR")
    return Path(folder) if folder else Path(default)


def datasets() -> list[dict[str, Any]]:
    """Return all datasets of the job: `name`, `role` ("data", "eval", …) and `dir` (a Path); outside of a job none."""
    try:
        rows = json.loads(os.environ.get("AIP_DATASETS") or "[]")
        return [{**row, "dir": Path(row["dir"])} for row in rows]
    except (ValueError, TypeError, KeyError) as error:
        log_line(f"aip.datasets: AIP_DATASETS cannot be read: {error}")
        return []
