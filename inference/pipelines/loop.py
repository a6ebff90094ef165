"""The loop of a run: hold its row, look at what is under way, have what is due written.

`advance_run` may be called by anybody at any time and be killed anywhere. What is due is decided and written in one
transaction that holds the run's row, jobs included, so no step is begun twice and none is lost. Messages are nudges:
a sweep finds what they would have said.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, TypeVar

from django.db import OperationalError, transaction
from django.db.models import F

from aiplatform.lib import read_once, wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.pipelines import approvals, graph, run_updates, step_start
from inference.pipelines.advance import State
from inference.pipelines.kinds import KINDS, Done, StepKind
from inference.pipelines.models import PipelineRun, StepRun
from inference.pipelines.run_updates import Moved, move
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import FINAL

log = logging.getLogger(__name__)
T = TypeVar("T")

AT_ONCE = 500  # runs of one sweep
TOGETHER = 20  # runs for which a sweep reads once what machines there are
MAX_CALLS = 1000  # transactions of one call; the sweep continues
MAX_ATTEMPTS = 3  # of a transaction that the database refused: a lock was not given, a deadlock was broken
LOOK_EVERY = timedelta(seconds=20)  # at a job that is over but not published yet
ACTIVE_STATES = (StepRun.State.STARTED, StepRun.State.ASKING)


def advance_due() -> int:
    """Advance all runs with something to do; returns how many there were. One that breaks holds up no other."""
    numbers = list(PipelineRun.objects.due(now()).order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
    refused = 0
    for first in range(0, len(numbers), TOGETHER):
        with read_once.reading():
            for number in numbers[first : first + TOGETHER]:
                refused = 0 if _advanced(number) else refused + 1
                if refused == MAX_ATTEMPTS:
                    raise OperationalError("The database refuses run after run; the next sweep tries again.")
    return len(numbers)


def _advanced(number: int) -> bool:
    """Advance one run of a sweep; whether the database took it."""
    try:
        advance_run(number)
    except OperationalError:
        log.warning("pipeline run=%s was not written, the next sweep tries again", number, exc_info=True)
        return False
    except Exception:
        log.exception("pipeline run=%s did not advance, the next sweep tries again", number)
    return True


def nudge(run_id: int) -> None:
    """Have a run looked at now, once this transaction commits; a lost message only costs until the next sweep."""
    enqueue("pipelines.advance", run_id=run_id)


def job_ended(job: Job) -> None:
    """Tell the runs that wait for a job that it is over for good."""
    rows = StepRun.objects.filter(job=job, state=StepRun.State.STARTED)
    for run_id in rows.values_list("run_id", flat=True).distinct():
        with transaction.atomic():
            nudge(run_id)


def is_of_run(job: Job) -> bool:
    """Whether a job is a step of a run, which reports its end itself."""
    return StepRun.objects.filter(job=job).exists()


def advance_run(number: int) -> None:
    """Bring one run on as far as it goes now; idempotent."""
    for _call in range(MAX_CALLS):
        if not run_with_retries(partial(_advance_once, number)):
            return


def run_with_retries(action: Callable[[], T]) -> T:
    """Run one transaction, again where the database refused it; a refused attempt leaves nothing behind."""
    for _attempt in range(MAX_ATTEMPTS - 1):
        try:
            return action()
        except (OperationalError, Moved):
            log.info("pipelines: a transaction is tried again", exc_info=True)
    return action()


@transaction.atomic
def _advance_once(number: int) -> bool:
    """One look and what is due; whether there may be more."""
    rows = PipelineRun.objects.select_for_update(of=("self",)).select_related("owner", "pipeline")
    run = rows.filter(pk=number, state=PipelineRun.State.RUNNING).first()
    if run is None:
        return False
    with read_once.reading():  # what there is of machines is read once for all that is begun now
        steps = _steps(run)
        changed = _poll_steps(run, steps)
        if run.cancel:
            _stop(run, steps)  # before what is due is decided: what has no job is over with it
        due = run_updates.Due(run, _parsed(json.dumps(run.spec)), steps)
        more = due.write()
    columns: dict[str, Any] = {"is_due": more}
    if changed or due.written:
        columns["revision"] = F("revision") + 1
    if columns != {"is_due": run.is_due}:
        PipelineRun.objects.filter(pk=run.pk).update(**columns)
    return more


@lru_cache(maxsize=32)
def _parsed(text: str) -> graph.Spec:
    """What a run runs, as JSON; runs of one version share it. It was checked when the run was made."""
    return graph.parse(json.loads(text), of_run=True)


def _steps(run: PipelineRun) -> list[StepRun]:
    """All rows of a run, in the order of steps and items; with the jobs that are over of those under way."""
    steps = list(StepRun.objects.filter(run=run).order_by("step", "item", "attempt"))
    waited = [step.job_id for step in steps if step.state == StepRun.State.STARTED and step.job_id is not None]
    ended = Job.objects.filter(pk__in=waited, state__in=FINAL).in_bulk() if waited else {}
    for step in steps:
        step.run = run
        if step.job_id in ended:
            step.job = ended[step.job_id]
            if step.job.owner_id == run.owner_id:
                step.job.owner = run.owner
    return steps


# What became of steps that are under way ---------------------------------------------------------------------------


def _poll_steps(run: PipelineRun, steps: Sequence[StepRun]) -> bool:
    """Record the outcome of running steps; returns whether anything changed."""
    changed = False
    for step in steps:
        if step.state not in ACTIVE_STATES or step_start.is_repeated_whole(run, step):
            continue
        kind = KINDS.find(step_start.kind_of(run, step))
        if kind is None:
            gone = wording.message("pipeline.kind_gone", kind=step_start.kind_of(run, step))
            changed |= _settle(run, step, gone)
        elif not _may(run, kind):
            _stop_one(kind, step)
            changed |= _settle(run, step, wording.message("pipeline.owner_not_allowed"))
        elif step.state == StepRun.State.ASKING:
            changed |= _settle(run, step, approvals.outcome(step))
        elif step.job_id is not None:
            if StepRun.job.is_cached(step) and step.job is not None and step.job.published:
                changed |= _settle(run, step, _outcome(step, kind.poll))
        elif step.look_at is None or step.look_at <= now():
            done = _outcome(step, kind.poll)
            if done is None:
                step.look_at = now() + LOOK_EVERY
                StepRun.objects.filter(pk=step.pk).update(look_at=step.look_at)
            changed |= _settle(run, step, done)
    return changed


def _may(run: PipelineRun, kind: StepKind) -> bool:
    """Whether the owner of a run may still do what a step does."""
    return run.owner.is_active and run.owner.can(kind.needs)


def _outcome(step: StepRun, poll: Any) -> Done | Message | None:
    """Return the outcome reported by its kind: done, an error message, or None while it runs."""
    try:
        with transaction.atomic():
            done: Done | None = poll(step)
            return done
    except DomainError as exc:
        return wording.of_error(exc)
    except OperationalError:
        raise
    except Exception as exc:  # a fault of ours fails the step, never the loop
        log.exception("pipeline run=%s step=%s its end was not understood", step.run_id, step.step)
        return wording.message("pipeline.broke", why=f"{type(exc).__name__}: {exc}")


def _settle(run: PipelineRun, step: StepRun, outcome: Done | Message | None) -> bool:
    if outcome is None:
        return False
    if isinstance(outcome, Message):
        move(step, State.CANCELLED if run.cancel else State.FAILED, message=outcome)
    else:
        move(step, State.OK, outputs=dict(outcome.outputs), answer=outcome.answer, message=outcome.message)
    return True


def _stop(run: PipelineRun, steps: Sequence[StepRun]) -> None:
    """Stop what is under way of a cancelled run."""
    for step in steps:
        if step.state != StepRun.State.STARTED or step_start.is_repeated_whole(run, step):
            continue
        kind = KINDS.find(step_start.kind_of(run, step))
        if kind is not None:
            _stop_one(kind, step)
            if step.job_id is None:
                move(step, State.CANCELLED)


def _stop_one(kind: StepKind, step: StepRun) -> None:
    """End what a step began; a refusal or a fault keeps nothing else from ending."""
    try:
        with transaction.atomic():
            kind.stop(step)
    except OperationalError:
        raise
    except Exception:
        log.exception("pipeline run=%s step=%s could not be stopped", step.run_id, step.step)
