"""The loop of a run: hold its row, look at what is under way, ask `advance` what is due, write it.

`advance_run` may be called by anybody at any time and be killed anywhere. What is due is decided and written in one
transaction that holds the run's row, jobs included, so no step is begun twice and none is lost. Messages are nudges:
a sweep finds what they would have said.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import OperationalError, transaction
from django.db.models import F

from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.pipelines import approvals, beginning, cache, graph
from inference.pipelines.advance import GOOD, WHOLE, Action, Row, State, Wishes, advance
from inference.pipelines.kinds import KINDS, Done, StepKind
from inference.pipelines.models import PipelineRun, StepRun
from workers.clock import now
from workers.models import Job

log = logging.getLogger(__name__)

AT_ONCE = 500  # runs of one sweep
MOST_BEGUN = 20  # steps begun in one transaction, so that others who write do not wait long
MOST_WRITTEN = 500  # rows made or moved in one
MOST_ROWS = 10_000  # of one run, items counted
MOST_CALLS = 1000  # transactions of one call; the sweep goes on
LOOK_EVERY = timedelta(seconds=20)  # at a job that is over but not published yet
UNDER_WAY = (StepRun.State.STARTED, StepRun.State.ASKING)


def advance_due() -> int:
    """Advance all runs with something to do; returns how many there were. One that breaks holds up no other."""
    numbers = list(PipelineRun.objects.due(now()).order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
    for number in numbers:
        try:
            advance_run(number)
        except OperationalError:  # the database is away: the next sweep tries again
            raise
        except Exception:
            log.exception("pipeline run=%s did not advance, the next sweep tries again", number)
    return len(numbers)


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
    """Whether a job is a step of a run, which tells of its end itself."""
    return StepRun.objects.filter(job=job).exists()


def advance_run(number: int) -> None:
    """Bring one run on as far as it goes now; idempotent."""
    for _call in range(MOST_CALLS):
        if not _advance_once(number):
            return


@transaction.atomic
def _advance_once(number: int) -> bool:
    """One look and what is due; whether there may be more."""
    rows = PipelineRun.objects.select_for_update(of=("self",)).select_related("owner", "pipeline")
    run = rows.filter(pk=number, state=PipelineRun.State.RUNNING).first()
    if run is None:
        return False
    spec = graph.parse(run.spec, of_run=True)
    changed = _look(run)
    if run.cancel:
        _stop(run)  # before the rows are read: what has no job is over with it
    steps = list(StepRun.objects.filter(run=run).defer("kept"))
    newest = _newest(steps)
    found = cache.Lookup(run, spec, newest)
    wishes = Wishes(cancel=run.cancel, skip=frozenset(run.skip), limit=run.limit, fail_fast=run.fail_fast)
    due = advance(spec.steps, [_row(step) for step in steps], wishes, found.known())
    begun = 0
    for action in due[:MOST_WRITTEN]:
        if action.verb == "begin":
            begun += 1
            if begun > MOST_BEGUN:
                continue  # the next transaction
        _apply(run, spec, action, newest, found)
    columns: dict[str, Any] = {"is_due": bool(due)}
    if changed or due:
        columns["revision"] = F("revision") + 1
    if columns != {"is_due": run.is_due}:
        PipelineRun.objects.filter(pk=run.pk).update(**columns)
    return bool(due)


def _newest(steps: list[StepRun]) -> dict[tuple[str, int], StepRun]:
    newest: dict[tuple[str, int], StepRun] = {}
    for step in sorted(steps, key=lambda one: one.attempt):
        newest[step.step, step.item] = step
    return newest


def _row(step: StepRun) -> Row:
    lengths = {port: len(value) for port, value in step.outputs.items() if isinstance(value, list)}
    return Row(step.step, step.item, step.attempt, State(step.state), step.answer, lengths)


# What became of steps that are under way ---------------------------------------------------------------------------


def _look(run: PipelineRun) -> bool:
    """Write down what became of steps under way; whether anything did."""
    changed = False
    rows = StepRun.objects.filter(run=run, state__in=UNDER_WAY).select_related("job__owner", "run__owner")
    for step in rows.order_by("step", "item"):
        kind = KINDS.find(beginning.kind_of(run, step))
        if beginning.is_repeated_whole(run, step):
            continue
        if kind is None:
            gone = wording.message("pipeline.kind_gone", kind=beginning.kind_of(run, step))
            changed |= _settle(run, step, gone)
        elif not _may(run, kind):
            _stop_one(kind, step)
            changed |= _settle(run, step, wording.message("pipeline.owner_not_allowed"))
        elif step.state == StepRun.State.ASKING:
            changed |= _settle(run, step, approvals.outcome(step))
        elif step.job_id is not None:
            if step.job is not None and step.job.is_final and step.job.published:
                changed |= _settle(run, step, _outcome(step, kind.look))
        elif step.look_at is None or step.look_at <= now():
            done = _outcome(step, kind.look)
            if done is None:
                StepRun.objects.filter(pk=step.pk).update(look_at=now() + LOOK_EVERY)
            changed |= _settle(run, step, done)
    return changed


def _may(run: PipelineRun, kind: StepKind) -> bool:
    """Whether the owner of a run may still do what a step does."""
    return run.owner.is_active and run.owner.can(kind.needs)


def _outcome(step: StepRun, look: Any) -> Done | Message | None:
    """What its kind says: done, a message of what went wrong, or None while it goes on."""
    try:
        with transaction.atomic():
            found: Done | None = look(step)
            return found
    except DomainError as exc:
        return wording.of_error(exc)
    except OperationalError:
        raise
    except Exception as exc:  # a fault of ours fails the step, never the loop
        log.exception("pipeline run=%s step=%s its end was not understood", step.run_id, step.step)
        return wording.message("pipeline.broke", why=f"{type(exc).__name__}: {exc}")


def _settle(run: PipelineRun, step: StepRun, found: Done | Message | None) -> bool:
    if found is None:
        return False
    if isinstance(found, Message):
        _move(step, State.CANCELLED if run.cancel else State.FAILED, message=found)
    else:
        _move(step, State.OK, outputs=dict(found.outputs), answer=found.answer, message=found.message)
    return True


def _move(step: StepRun, state: State, **columns: Any) -> bool:
    """Change a row, if it still stands where it was read."""
    over = {} if state in (State.STARTED, State.ASKING) else {"ended_at": now(), "look_at": None}
    unmoved = StepRun.objects.filter(pk=step.pk, state=step.state)
    moved = bool(unmoved.update(state=state, **(columns | over)))
    step.state = state
    return moved


def _stop(run: PipelineRun) -> None:
    """Stop what is under way of a cancelled run."""
    for step in StepRun.objects.filter(run=run, state=StepRun.State.STARTED).select_related("job"):
        kind = KINDS.find(beginning.kind_of(run, step))
        if kind is not None and not beginning.is_repeated_whole(run, step):
            _stop_one(kind, step)
            if step.job_id is None:
                _move(step, State.CANCELLED)


def _stop_one(kind: StepKind, step: StepRun) -> None:
    """End what a step began; a refusal or a fault keeps nothing else from ending."""
    try:
        with transaction.atomic():
            kind.stop(step)
    except OperationalError:
        raise
    except Exception:
        log.exception("pipeline run=%s step=%s could not be stopped", step.run_id, step.step)


# What is due -----------------------------------------------------------------------------------------------------


def _apply(
    run: PipelineRun,
    spec: graph.Spec,
    action: Action,
    newest: Mapping[tuple[str, int], StepRun],
    found: cache.Lookup,
) -> None:
    if action.verb == "insert":
        StepRun.objects.create(run=run, step=action.step, item=action.item, attempt=action.attempt)
        return
    if action.verb == "finish":
        _finish(run, action.state)
        return
    step = newest[action.step, action.item]
    if action.verb == "begin":
        _begin(run, spec, step, newest, found)
    elif action.state is State.CACHED:
        earlier = found.of(step)
        _move(
            step, State.CACHED, outputs=cache.as_own(earlier.outputs, step.step), answer=earlier.answer,
            cached_from=earlier, cache_key=earlier.cache_key, started_at=now(),
        )  # fmt: skip
    elif action.state is State.STARTED:
        _open_list(spec, step, newest)
    elif action.item == WHOLE and spec.steps[action.step].each is not None and action.state in (State.OK, State.FAILED):
        _move(step, action.state, **_gathered(spec.steps[action.step], step, newest, action.state))
    else:
        _move(step, action.state, message=_why_not(run, spec.steps[action.step], newest, action.state))


def _why_not(run: PipelineRun, of: graph.Step, newest: Mapping[tuple[str, int], StepRun], state: State) -> Message:
    """Why a step is left out; nothing of one that is cancelled."""
    if state is not State.SKIPPED:
        return Message()
    if of.key in run.skip:
        return wording.message("pipeline.skipped_by_person")
    asked = newest.get((of.when.step, WHOLE)) if of.when else None
    if of.when and asked is not None and asked.answer and asked.answer != of.when.port:
        return wording.message("pipeline.other_answer", step=of.when.step, answer=asked.answer)
    missing = [name for name in of.needs if (row := newest.get((name, WHOLE))) and row.state not in GOOD]
    return wording.message("pipeline.left_out_with", steps=", ".join(missing[:5])) if missing else Message()


def _open_list(spec: graph.Spec, whole: StepRun, newest: Mapping[tuple[str, int], StepRun]) -> None:
    """Let a step run for each item, unless the rows of the run become too many."""
    counts = {}
    for key, of in spec.steps.items():
        row = newest.get((key, WHOLE))
        if of.each is not None and row is not None and (row.state != State.WAITING or row is whole):
            source = newest.get((of.each.step, WHOLE))
            counts[key] = len(source.outputs.get(of.each.port) or ()) if source else 0
    count = counts[whole.step]
    if len(spec.steps) + sum(counts.values()) > MOST_ROWS:
        why = wording.message("pipeline.too_many_items", count=count, most=MOST_ROWS)
        _move(whole, State.FAILED, message=why, started_at=now())
        return
    _move(whole, State.STARTED, started_at=now())


def _gathered(
    of: graph.Step, whole: StepRun, newest: Mapping[tuple[str, int], StepRun], state: State
) -> dict[str, Any]:
    """The outputs of a step that ran for each item: lists in the order of the items, without those that failed."""
    first = (whole.attempt - 1) * (of.retries + 1)
    rows = [
        row for (key, item), row in sorted(newest.items()) if key == of.key and item != WHOLE and row.attempt > first
    ]
    good = [row for row in rows if row.state in (State.OK, State.CACHED)]
    ports = sorted({port for row in good for port in row.outputs})
    outputs = {port: [row.outputs[port] for row in good if port in row.outputs] for port in ports}
    failed = len(rows) - len(good)
    message = wording.message("pipeline.items_failed", count=failed, of=len(rows)) if failed else Message()
    return {"outputs": outputs if state is State.OK else {}, "message": message}


def _begin(
    run: PipelineRun,
    spec: graph.Spec,
    step: StepRun,
    newest: Mapping[tuple[str, int], StepRun],
    found: cache.Lookup,
) -> None:
    """Begin what a step does, in the same transaction: the job and the row, or neither."""
    key = found.key_of(step)
    try:
        with transaction.atomic():
            begun = beginning.begin(run, spec, step, newest)
    except DomainError as exc:
        _move(step, State.FAILED, message=wording.of_error(exc), started_at=now(), cache_key="")
        return
    except OperationalError:
        raise
    except Exception as exc:  # a fault of ours fails the step, never the loop
        log.exception("pipeline run=%s step=%s did not begin", run.pk, step.step)
        why = wording.message("pipeline.broke", why=f"{type(exc).__name__}: {exc}")
        _move(step, State.FAILED, message=why, started_at=now())
        return
    columns: dict[str, Any] = {
        "job": begun.job, "kept": dict(begun.kept), "cache_key": key, "started_at": now(),
        "look_at": now() + begun.look_again if begun.look_again else None,
    }  # fmt: skip
    if begun.done is not None:
        done = begun.done
        columns |= {"outputs": dict(done.outputs), "answer": done.answer, "message": done.message}
        _move(step, State.OK, **columns)
    else:
        _move(step, State.ASKING if begun.asks else State.STARTED, **columns)


def _finish(run: PipelineRun, state: State) -> None:
    names = sorted(set(StepRun.objects.filter(run=run, item=WHOLE, state=State.FAILED).values_list("step", flat=True)))
    still = [name for name in names if _last_failed(run, name)]
    message = wording.message("pipeline.failed", steps=", ".join(still[:10])) if state is State.FAILED else Message()
    refusing = StepRun.objects.filter(run=run, item=WHOLE, state=State.OK, answer=approvals.REFUSED)
    if state is State.OK and (names := sorted(set(refusing.values_list("step", flat=True)))):
        message = wording.message("pipeline.refused_at", steps=", ".join(names[:10]))
    columns: dict[str, Any] = {"state": state, "message": message, "ended_at": now()}
    ended = PipelineRun.objects.filter(pk=run.pk, state=PipelineRun.State.RUNNING).update(**columns)
    if ended and state is not State.CANCELLED:
        _announce(run, state, message)


def _last_failed(run: PipelineRun, name: str) -> bool:
    last = StepRun.objects.filter(run=run, step=name, item=WHOLE).order_by("-attempt").first()
    return last is not None and last.state == State.FAILED


def _announce(run: PipelineRun, state: State, message: Message) -> None:
    kind, code = ("failed", "pipeline.news_failed") if state is State.FAILED else ("finished", "pipeline.news_ok")
    title = wording.message(code, name=run.pipeline.name, number=run.number)
    notify(
        run.owner, kind, title=title, text=message, url=f"/pipelines/runs/{run.pk}/",
        key=f"pipeline-run-{run.pk}-{run.revision}",
    )  # fmt: skip
