"""Answers in MLflow's form."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from training.experiments.models import Run
from training.experiments.tracking import experiments, figures, runs
from training.experiments.tracking.figures import Latest
from training.experiments.tracking.models import Experiment, LoggedModel, Reported, TrackedModel, TrackedVersion

SCHEME = "mlflow-artifacts:/"


def ms(moment: datetime | None) -> int:
    """Milliseconds since 1970; 0 for no moment."""
    return round(moment.timestamp() * 1000) if moment else 0


def pairs(values: dict[str, Any]) -> list[dict[str, str]]:
    return [{"key": key, "value": str(value)} for key, value in sorted(values.items())]


def life(*, archived: bool) -> str:
    return "deleted" if archived else "active"


def experiment(row: Experiment) -> dict[str, Any]:
    number = str(row.pk) if row.pk else experiments.DEFAULT_ID
    return {
        "experiment_id": number,
        "name": row.name or experiments.DEFAULT,
        "artifact_location": f"{SCHEME}experiments/{number}",
        "lifecycle_stage": life(archived=row.archived),
        "creation_time": ms(row.created_at),
        "last_update_time": ms(experiments.moved_at(row)),
        "tags": pairs(row.tags),
    }


def place_of_run(uid: str) -> str:
    """Where the files of a run are, as clients know it."""
    return f"{SCHEME}runs/{uid}"


def place_of_model(uid: str) -> str:
    """Where the files of a model are, as clients know it."""
    return f"{SCHEME}models/{uid}"


def run(row: Run) -> dict[str, Any]:
    return all_runs([row])[0]


def all_runs(rows: Sequence[Run]) -> list[dict[str, Any]]:
    """Runs with what they were given and reached, however many, with as many queries as for one."""
    numbers, latest = experiments.ids_of(rows), figures.latest(rows)
    reports = {row.run_id: row for row in Reported.objects.filter(run__in=rows)}
    return [_run(row, numbers[row.owner_id, row.experiment], latest[row.pk], reports.get(row.pk)) for row in rows]


def info(row: Run, experiment_id: str) -> dict[str, Any]:
    begun = row.job.started_at or row.created_at if row.job is not None else row.created_at
    ended = row.job.ended_at if row.job is not None else row.ended_at
    fields = {
        "run_id": row.uid,
        "run_uuid": row.uid,
        "run_name": name_of(row),
        "experiment_id": experiment_id,
        "user_id": row.owner.username,
        "status": runs.status_of(row),
        "start_time": ms(begun),
        "artifact_uri": place_of_run(row.uid),
        "lifecycle_stage": life(archived=row.archived),
    }
    return fields | ({"end_time": ms(ended)} if ended else {})


def name_of(row: Run) -> str:
    """The name that its script gave a run, else that of its job."""
    return row.name or str(row)


def tags_of(row: Run) -> dict[str, str]:
    """Tags as clients know them, those that the platform keeps elsewhere among them."""
    own = {tag.key: tag.value for tag in row.tags.all()}
    own |= {runs.NAME: name_of(row), runs.USER: row.owner.username}
    if row.notes:
        own[runs.NOTE] = row.notes
    if row.parent is not None:
        own[runs.PARENT] = row.parent.uid
    if row.job_id is not None:
        own["aiplatform.job"] = f"{settings.SITE_URL}/jobs/{row.job_id}/"
    return own


def _run(row: Run, experiment_id: str, latest: dict[str, Latest], report: Reported | None) -> dict[str, Any]:
    data = {
        "metrics": [metric(name, point) for name, point in sorted(latest.items())],
        "params": [{"key": param.key, "value": param.text} for param in row.params.all()],
        "tags": pairs(tags_of(row)),
    }
    result = {"info": info(row, experiment_id), "data": data}
    if report and report.inputs:
        result["inputs"] = {"dataset_inputs": report.inputs}
    if report and report.outputs:
        result["outputs"] = {"model_outputs": report.outputs}
    return result


def metric(name: str, point: Latest) -> dict[str, Any]:
    return {"key": name, "value": point.value, "timestamp": ms(point.at), "step": point.step}


def logged_model(row: LoggedModel, experiment_id: str) -> dict[str, Any]:
    info = {
        "model_id": row.uid,
        "experiment_id": experiment_id,
        "name": row.name,
        "creation_timestamp_ms": ms(row.created_at),
        "last_updated_timestamp_ms": ms(row.updated_at),
        "artifact_uri": place_of_model(row.uid),
        "status": row.status,
        "model_type": row.model_type,
        "source_run_id": row.run.uid if row.run else "",
        "tags": pairs(row.tags),
        "creator_id": row.owner_id,
    }
    return {"info": info, "data": {"params": pairs(row.params), "metrics": row.metrics}}


def registered_model(row: TrackedModel) -> dict[str, Any]:
    versions = list(row.versions.all())
    newest: dict[str, TrackedVersion] = {}
    for row_version in versions:  # newest first
        newest.setdefault(row_version.stage, row_version)
    return {
        "name": row.name,
        "creation_timestamp": ms(row.created_at),
        "last_updated_timestamp": ms(row.updated_at),
        "user_id": row.owner.username,
        "description": row.description,
        "latest_versions": [version(row_version, row) for row_version in newest.values()],
        "tags": pairs(row.tags),
        "aliases": [{"alias": alias, "version": str(number)} for alias, number in sorted(row.aliases.items())],
    }


def version(row: TrackedVersion, model: TrackedModel) -> dict[str, Any]:
    return {
        "name": model.name,
        "version": str(row.number),
        "creation_timestamp": ms(row.created_at),
        "last_updated_timestamp": ms(row.updated_at),
        "user_id": model.owner.username,
        "current_stage": row.stage,
        "description": row.description,
        "source": row.source,
        "run_id": row.run.uid if row.run else "",
        "model_id": row.logged.uid if row.logged else "",
        "status": "READY",
        "tags": pairs(row.tags),
        "aliases": sorted(alias for alias, number in model.aliases.items() if number == row.number),
    }
