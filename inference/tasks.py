"""Celery tasks of models at work. They take ids, return nothing and are safe to run twice."""

from __future__ import annotations

from celery import shared_task

from inference.feedback import samples
from inference.push import pushes
from inference.services import swapping
from inference.traffic import counting, trials


@shared_task(name="inference.sweep", ignore_result=True)
def sweep() -> None:
    """Go on with services that change their model or try another one, and with pushes, while nobody looks at them."""
    swapping.sweep()
    trials.sweep()
    counting.forget_old()
    samples.sweep()
    pushes.sweep()


@shared_task(name="inference.push", ignore_result=True)
def push(push_id: int) -> None:
    """Send one push to its place. Safe to send twice."""
    pushes.run(push_id)
