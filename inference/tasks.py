"""Celery tasks of models at work. They take ids, return nothing and are safe to run twice."""

from __future__ import annotations

from celery import shared_task
from django.core.cache import cache

from inference.delivery.edge import rollout as edge_stages
from inference.delivery.push import pushes
from inference.registry import registration, sweeps
from inference.registry.import_trials import drafts
from inference.serving import model_swaps
from inference.serving.feedback import samples
from inference.serving.models import Service
from inference.serving.monitoring import collection
from inference.serving.monitoring import notices as drift_telling
from inference.serving.scaling import scaling
from inference.serving.shared_hosts import folders, separation
from inference.serving.traffic import counters, trials
from workers.core.models import Job

COLLECTING = "collecting"  # while a round is under way


@shared_task(name="inference.sweep", ignore_result=True)
def sweep() -> None:
    """Continue services and releases without requests, and delete what is old."""
    for part in PARTS:
        with sweeps.kept_apart(f"{part.__module__}.{part.__name__} failed"):
            part()


PARTS = (
    model_swaps.sweep,
    trials.sweep,
    separation.sweep,
    scaling.sweep,
    edge_stages.sweep,
    counters.forget_old,
    samples.sweep,
    drift_telling.sweep,
    pushes.sweep,
    registration.remove_stale_workplaces,
    drafts.remove_old,
)


@shared_task(name="inference.collect", ignore_result=True)
def collect() -> None:
    """Fetch what servers have counted and kept; one round at a time."""
    if not cache.add(COLLECTING, 1, 2 * collection.BUDGET_S):
        return
    try:
        collection.sweep()
    finally:
        cache.delete(COLLECTING)


@shared_task(name=scaling.TASK, ignore_result=True)
def scale(service_id: int) -> None:
    """Look whether a service needs more servers, or fewer."""
    service = Service.objects.select_related("job", "owner").filter(pk=service_id).first()
    if service is not None:
        scaling.scale(service)


@shared_task(name="inference.fill_host", ignore_result=True)
def fill_host(job_id: int) -> None:
    """Put the models of a shared process into its folder."""
    job = Job.objects.filter(pk=job_id).first()
    if job is not None:
        folders.sync(job)


@shared_task(name="inference.push", ignore_result=True)
def push(push_id: int) -> None:
    """Send one push to its place. Safe to send twice."""
    pushes.run(push_id)
