"""Celery tasks of models at work. They take ids, return nothing and are safe to run twice."""

from __future__ import annotations

from celery import shared_task
from django.core.cache import cache

from inference.edge import stages as edge_stages
from inference.feedback import samples
from inference.models import Service
from inference.monitoring import collecting
from inference.monitoring import telling as drift_telling
from inference.push import pushes
from inference.scaling import scaling
from inference.services import each, models, swapping
from inference.sharing import filling, parting
from inference.traffic import counting, trials
from workers.models import Job

COLLECTING = "collecting"  # while a round is under way


@shared_task(name="inference.sweep", ignore_result=True)
def sweep() -> None:
    """Go on with services and releases while nobody looks at them, and forget what is old."""
    for part in PARTS:
        with each.kept_apart(f"{part.__module__}.{part.__name__} failed"):
            part()


PARTS = (
    swapping.sweep,
    trials.sweep,
    parting.sweep,
    scaling.sweep,
    edge_stages.sweep,
    counting.forget_old,
    samples.sweep,
    drift_telling.sweep,
    pushes.sweep,
    models.remove_stale_workplaces,
)


@shared_task(name="inference.collect", ignore_result=True)
def collect() -> None:
    """Fetch what servers have counted and kept; one round at a time."""
    if not cache.add(COLLECTING, 1, 2 * collecting.BUDGET_S):
        return
    try:
        collecting.sweep()
    finally:
        cache.delete(COLLECTING)


@shared_task(name=scaling.TASK, ignore_result=True)
def scale(service_id: int) -> None:
    """Look whether a service needs more servers, or fewer."""
    service = Service.objects.select_related("job", "owner").filter(pk=service_id).first()
    if service is not None:
        scaling.look(service)


@shared_task(name="inference.fill_host", ignore_result=True)
def fill_host(job_id: int) -> None:
    """Put the models of a shared process into its folder."""
    job = Job.objects.filter(pk=job_id).first()
    if job is not None:
        filling.fill(job)


@shared_task(name="inference.push", ignore_result=True)
def push(push_id: int) -> None:
    """Send one push to its place. Safe to send twice."""
    pushes.run(push_id)
