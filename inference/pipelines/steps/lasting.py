"""Steps that go on for a while without a job: what they keep, how they fail, and what they do beside the loop.

`go_on` stands in for `look`. It runs in a transaction that holds the run, and what it did is undone where it raises: a
step that has to undo something and fails after it says why by `fail`, and is ended at the next look. What takes time
(files, the network) stands in `aside`, which a task runs without holding anything; it must be safe to repeat.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction

from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.pipelines import beginning, loop
from inference.pipelines.kinds import KINDS, Done, StepFailed, StepKind
from inference.pipelines.models import PipelineRun, StepRun
from workers.clock import now

FIRST_LOOK = timedelta(seconds=3)
WHY = "why"  # of what a row keeps: it fails at the next look


class LastingStep(StepKind):
    """A step that is looked at again and again until it is over."""

    acts = True

    def look(self, row: StepRun) -> Done | None:
        if row.kept.get(WHY):
            raise StepFailed(Message.from_json(row.kept[WHY]))
        owner = row.run.owner
        if not owner.is_active or not owner.can(self.needs):
            self.stop(row)
            fail(row, wording.message("pipeline.owner_not_allowed"))
            return None
        return self.go_on(row)

    def go_on(self, row: StepRun) -> Done | None:
        """What became of it; None: not over yet.

        Raises:
            StepFailed: it went wrong, and nothing was written just now.
        """
        raise NotImplementedError(f"The step kind {self.name!r} does not say how it goes on.")

    def aside(self, row: StepRun) -> Mapping[str, Any] | None:
        """What takes time; gives what the row keeps of it, None where there is no news.

        Raises:
            DomainError: the step fails with its words.
        """
        return None

    def stop(self, row: StepRun) -> None:
        """End what it began; called once."""


def keep(row: StepRun, **values: Any) -> None:
    """Keep more for the next look; within the transaction of this one."""
    row.kept = {**row.kept, **values}
    StepRun.objects.filter(pk=row.pk).update(kept=row.kept)


def fail(row: StepRun, why: Message) -> None:
    """Let it fail at the next look, so that what was written now stays."""
    keep(row, **{WHY: why.as_json()})


def ask_aside(row: StepRun) -> None:
    """Have what takes time done once this transaction commits; a lost message is made up for by the next look."""
    enqueue("pipelines.step_aside", step_run_id=row.pk)


def do_aside(step_run_id: int) -> None:
    """Do what takes time of a step that is under way, and have its run looked at where there is news."""
    rows = StepRun.objects.filter(pk=step_run_id, state=StepRun.State.STARTED).select_related("run__owner")
    row = rows.first()
    kind = KINDS.find(beginning.kind_of(row.run, row)) if row else None
    if row is None or not isinstance(kind, LastingStep) or row.kept.get(WHY):
        return
    news: Mapping[str, Any] | None
    try:
        news = kind.aside(row)
    except DomainError as exc:
        news = {WHY: wording.of_error(exc).as_json()}
    if news is None:
        return
    with transaction.atomic():
        PipelineRun.objects.select_for_update().get(pk=row.run_id)  # first, as the loop does
        fresh = StepRun.objects.filter(pk=row.pk, state=StepRun.State.STARTED).first()
        if fresh is not None:
            StepRun.objects.filter(pk=row.pk).update(kept={**fresh.kept, **news}, look_at=now())
            loop.nudge(row.run_id)
