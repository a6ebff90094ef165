"""Celery tasks of models at work. They take ids, return nothing and are safe to run twice."""

from __future__ import annotations

from celery import shared_task

from inference.edge import stages as edge_stages
from inference.feedback import samples
from inference.models import Service
from inference.monitoring import collecting
from inference.monitoring import telling as drift_telling
from inference.scaling import scaling
from inference.services import swapping
from inference.traffic import counting, trials


@shared_task(name="inference.sweep", ignore_result=True)
def sweep() -> None:
    """Go on with services that change their model, or try another one, while nobody looks at them."""
    swapping.sweep()
    trials.sweep()
    scaling.sweep()
    edge_stages.sweep()
    collecting.sweep()
    drift_telling.sweep()
    counting.forget_old()
    samples.sweep()


@shared_task(name=scaling.TASK, ignore_result=True)
def scale(service_id: int) -> None:
    """Look whether a service needs more servers, or fewer."""
    service = Service.objects.select_related("job", "owner").filter(pk=service_id).first()
    if service is not None:
        scaling.look(service)
