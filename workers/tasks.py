"""Celery tasks of workers. Each parses its ids, calls one service and returns."""

from __future__ import annotations

from celery import shared_task

from workers.execution import handing_over, launch, results


@shared_task(name="workers.start", ignore_result=True)
def start(attempt_id: int, rank: int = 0) -> None:
    """Start one rank of an attempt on this node. Safe to run twice."""
    launch.start(attempt_id, rank)


@shared_task(name="workers.hand_over", ignore_result=True)
def hand_over(attempt_id: int) -> None:
    """Open, for another machine, what an attempt needs to start there. Safe to run twice."""
    launch.hand_over(attempt_id)


@shared_task(name="workers.hand_over_sweep", ignore_result=True)
def hand_over_sweep() -> None:
    """Open what attempts wait for whose message was lost, and remove what those that are over left."""
    for attempt_id in handing_over.unserved():
        launch.hand_over(attempt_id)
    handing_over.forget_ended()


@shared_task(name="workers.start_each", ignore_result=True)
def start_each(ids: list[int]) -> None:
    """Start these attempts of one machine each on this node. Safe to run twice."""
    launch.start_each(ids)


@shared_task(name="workers.finish", ignore_result=True)
def finish(ids: list[int]) -> None:
    """Let the kinds of these jobs keep what their runs left behind. Safe to run twice."""
    results.publish_each(ids)
