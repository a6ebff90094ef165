"""Celery tasks of pipelines."""

from __future__ import annotations

from celery import shared_task

from inference.pipelines import loop, pruning, trigger_firings
from inference.pipelines.steps import long_running


@shared_task(name="pipelines.advance", ignore_result=True)
def advance(run_id: int) -> None:
    """Bring one run on: something about it is new."""
    loop.advance_run(run_id)


@shared_task(name="pipelines.advance_due", ignore_result=True)
def advance_due() -> None:
    """Bring on all runs that have something to do."""
    loop.advance_due()


@shared_task(name="pipelines.fire_due", ignore_result=True)
def fire_due() -> None:
    """Begin the runs that triggers ask for."""
    trigger_firings.fire_due()


@shared_task(name="pipelines.prune", ignore_result=True)
def prune() -> None:
    """Delete old runs and firings."""
    pruning.sweep()


@shared_task(name="pipelines.step_aside", ignore_result=True)
def step_aside(step_run_id: int) -> None:
    """Run the slow part of one step outside of the loop."""
    long_running.do_aside(step_run_id)
