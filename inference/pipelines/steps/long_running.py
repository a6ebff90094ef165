"""Steps that run for a while without a job: what they store, how they fail, and their work outside of the loop.

`go_on` replaces `poll`. It runs in a transaction that locks the run, and its changes are undone where it raises: a step
that has to undo something before it fails calls `fail`, and is ended at the next poll. Slow work (files, the network)
belongs in `aside`, which a task runs without any lock; it must be safe to repeat.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import OperationalError, transaction
from django.utils.dateparse import parse_datetime

from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.pipelines import loop, step_start
from inference.pipelines.kinds import KINDS, Done, StepFailed, StepKind
from inference.pipelines.models import PipelineRun, StepRun
from workers.core.clock import now

FIRST_LOOK = timedelta(seconds=3)
ASK_AGAIN = timedelta(minutes=15)
WHY = "why"  # stored key: the step fails at the next poll
ASKED = "asked_aside"  # stored key: since when background work is queued
log = logging.getLogger(__name__)


class LastingStep(StepKind):
    """A step that is polled until it is over."""

    acts = True

    def poll(self, row: StepRun) -> Done | None:
        if row.kept.get(WHY):
            raise StepFailed(Message.from_json(row.kept[WHY]))
        return self.go_on(row)

    def go_on(self, row: StepRun) -> Done | None:
        """Return the outcome; None: not over yet.

        Raises:
            StepFailed: it went wrong, and nothing was written just now.
        """
        raise NotImplementedError(f"The step kind {self.name!r} does not say how it goes on.")

    def aside(self, row: StepRun) -> Mapping[str, Any] | None:
        """Do the slow part; returns values to store, None where nothing changed.

        Raises:
            DomainError: the step fails with its words.
        """
        return None

    def stop(self, row: StepRun) -> None:
        """End what it began; called once."""


def store(row: StepRun, **values: Any) -> None:
    """Store more values for the next poll; within the transaction of this one."""
    row.kept = {**row.kept, **values}
    StepRun.objects.filter(pk=row.pk).update(kept=row.kept)


def fail(row: StepRun, why: Message) -> None:
    """Let it fail at the next poll, so that what was written now remains."""
    store(row, **{WHY: why.as_json()})


def queue_aside(row: StepRun) -> None:
    """Queue the slow part of a step once this transaction commits, unless it is running.

    A part that is queued and not complete after a while counts as lost, and is queued again.

    What was asked for and is not over after a while counts as lost, and is asked for again.
    """
    queued_at = parse_datetime(row.kept.get(ASKED, ""))
    if queued_at is None or now() - queued_at > ASK_AGAIN:
        store(row, **{ASKED: now().isoformat()})
        enqueue("pipelines.step_aside", step_run_id=row.pk)


def do_aside(step_run_id: int) -> None:
    """Do what takes time of a step that is under way, and have its run looked at where there is news."""
    rows = StepRun.objects.filter(pk=step_run_id, state=StepRun.State.STARTED).select_related("run__owner")
    row = rows.first()
    kind = KINDS.find(step_start.kind_of(row.run, row)) if row else None
    if row is None or not isinstance(kind, LastingStep) or row.kept.get(WHY):
        return
    news: Mapping[str, Any] | None
    try:
        news = kind.aside(row)
    except DomainError as exc:
        news = {WHY: wording.of_error(exc).as_json()}
    except OperationalError:
        raise
    except Exception as exc:  # a fault of ours fails the step, or it would be tried for ever
        log.exception("pipeline run=%s step=%s broke beside the loop", row.run_id, row.step)
        news = {WHY: wording.message("pipeline.broke", why=f"{type(exc).__name__}: {exc}").as_json()}
    loop.run_with_retries(partial(_note, row, news))


@transaction.atomic
def _note(row: StepRun, result: Mapping[str, Any] | None) -> None:
    """Store the result of the background part, and wake the run where there is one."""
    PipelineRun.objects.select_for_update().get(pk=row.run_id)  # first, as the loop does
    fresh = StepRun.objects.filter(pk=row.pk, state=StepRun.State.STARTED).first()
    if fresh is None:
        return
    stored = {name: value for name, value in fresh.kept.items() if name != ASKED} | dict(result or {})
    StepRun.objects.filter(pk=row.pk).update(kept=stored)
    if result is not None:
        StepRun.objects.filter(pk=row.pk).update(look_at=now())
        loop.nudge(row.run_id)
