"""Jobs in states that only the spine can bring about, and endpoints for them."""

from __future__ import annotations

from pathlib import Path

from django.utils.timezone import now

from inference.kit.samples.run import Run
from inference.serving.models import Service
from workers.access.proxy import endpoints
from workers.core.models import Attempt, Job


def set_state(job: Job, state: str) -> Job:
    """Set the state of a job's row, as the scheduler would."""
    Job.objects.filter(pk=job.pk).update(**{"state": state, "attempt_number": 1, "started_at": now()})
    Attempt.objects.get_or_create(job=job, number=1)
    job.refresh_from_db()
    return job


def running_at(monkeypatch, service: Service, port: int) -> None:
    """Let the service's job run with its server at `port`."""
    set_state(service.job, "running")
    service.refresh_from_db()
    monkeypatch.setattr(endpoints, "endpoint", lambda job: ("127.0.0.1", port) if job.pk == service.job_id else None)


def a_run(folder: Path, model: Path, dataset: Path, **params: object) -> Run:
    """An evaluation's run directory, without a job."""
    for name in ("outputs", "checkpoints"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Run(
        model=model,
        dataset=dataset,
        outputs=folder / "outputs",
        checkpoints=folder / "checkpoints",
        resume_from=None,
        metrics=folder / "metrics.jsonl",
        control=folder / "control",
        params={"split": "test", **params},
    )
