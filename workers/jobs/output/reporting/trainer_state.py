"""`trainer_state.json` of the HuggingFace Trainer: the whole history, written again with each checkpoint. Pure.

All of one training say the same, each more than the one before: their folder stands for them, and entries are counted.
Keys are those that its TensorBoard logger writes, where these points count once.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from aiplatform.lib.numbers import finite
from workers.jobs.output.reporting.harvest import Harvest, Source, step_of
from workers.jobs.output.reporting.watched import Watched

NAME = "trainer_state.json"
MAX_BYTES = 8 * 1024 * 1024
MAX_SEEN = 20
CHECKPOINT = re.compile(r"(?:^|/)checkpoint-\d+\Z")
_NO_FIGURES = {"step", "epoch", "total_flos"}
_PREFIXES = (("eval_", "eval/"), ("test_", "test/"))


def read(watched: Watched, harvest: Harvest) -> None:
    """Ingest new entries of the history. `position` counts them, for all files of the training together."""
    signatures = watched.memory.setdefault("seen", {})
    if signatures.get(watched.path) == watched.signature:
        return
    signatures.pop(watched.path, None)
    signatures[watched.path] = watched.signature
    while len(signatures) > MAX_SEEN:
        del signatures[next(iter(signatures))]
    history = _history(watched, harvest)
    source = Source("trainer_state", CHECKPOINT.sub("", watched.folder), shy=True)
    for entry in history[watched.position :]:
        if isinstance(entry, dict):
            _entry(entry, source, harvest, watched.changed_at)
    watched.position = max(watched.position, len(history))


def _history(watched: Watched, harvest: Harvest) -> list[Any]:
    if watched.size > MAX_BYTES:
        harvest.miss("file_too_large")
        return []
    harvest.taken += watched.size
    try:
        state = json.loads(os.pread(watched.descriptor, MAX_BYTES, 0))
    except (ValueError, RecursionError):  # just being written
        return []
    history = state.get("log_history") if isinstance(state, dict) else None
    return history if isinstance(history, list) else []


def _entry(entry: dict[str, Any], source: Source, harvest: Harvest, at: float) -> None:
    step = step_of(entry.get("step"))
    for name, value in list(entry.items())[:200]:
        number = finite(value)
        if step is not None and number is not None and name not in _NO_FIGURES:
            harvest.point(source, key_of(name), step, number, at)


def key_of(name: str) -> str:
    """The name under which the Trainer's own TensorBoard logger writes a figure."""
    for prefix, instead in _PREFIXES:
        if name.startswith(prefix):
            return instead + name.removeprefix(prefix)
    return f"train/{name}"
