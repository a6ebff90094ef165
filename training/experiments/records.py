"""Records of runs: made with the job they stand for, given parameters and tags. Never asks who may."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from aiplatform.lib.numbers import finite
from aiplatform.lib.secret_names import mask_params
from training.experiments.models import Param, Run, Tag
from workers.core.models import Job

LONGEST_KEY, LONGEST_TEXT = 250, 6000
MAX_PARAMS = 2000


def create_runs(jobs: Iterable[Job], params: Iterable[Mapping[str, Any]], *, experiment: str = "") -> list[Run]:
    """Record jobs that were just queued, each with its parameters, in the transaction that queues them."""
    pairs = list(zip(jobs, params, strict=True))
    runs = Run.objects.bulk_create(
        Run(job=job, owner_id=job.owner_id, experiment=experiment, created_at=job.created_at) for job, _params in pairs
    )
    _add(Param, [row for run, (_job, own) in zip(runs, pairs, strict=True) for row in rows(run, own)])
    return runs


def set_params(run: Run, params: Mapping[str, Any]) -> None:
    """Add parameters, or change those of the same key."""
    _add(Param, rows(run, params))


def change(job: Job, params: Mapping[str, Any]) -> None:
    """Keep what a job that goes on is given from now on."""
    run = Run.objects.filter(job=job).first()
    if run:
        set_params(run, params)


def set_tags(run: Run, tags: Mapping[str, str]) -> None:
    """Add tags, or change the values of those that are there."""
    _add(Tag, [Tag(run=run, key=key[:LONGEST_KEY], value=value[:8000]) for key, value in tags.items()])


def rows(run: Run, params: Mapping[str, Any]) -> list[Param]:
    """Parameters as they are stored: nested ones by their path, as `optimizer.lr`; secret ones hidden."""
    flat = mask_params(dict(_flat("", params)))
    made = []
    for key, value in list(flat.items())[:MAX_PARAMS]:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        made.append(Param(run=run, key=key[:LONGEST_KEY], text=text[:LONGEST_TEXT], number=number_of(value)))
    return list({row.key: row for row in made}.values())


def number_of(value: Any) -> float | None:
    """A parameter as a number to compare, if it is one: also of text as scripts report it."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, str):
        if value.strip().lower() in ("true", "false"):
            return float(value.strip().lower() == "true")
        try:
            value = float(value)
        except ValueError:
            return None
        return value if math.isfinite(value) else None
    return finite(value)


def _flat(before: str, params: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for key, value in params.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(f"{before}{key}.", value)
        else:
            yield f"{before}{key}", value


def _add(model: type[Param] | type[Tag], made: list[Any]) -> None:
    changed = ["text", "number"] if model is Param else ["value"]
    model.objects.bulk_create(
        made, update_conflicts=True, unique_fields=["run", "key"], update_fields=changed, batch_size=500
    )
