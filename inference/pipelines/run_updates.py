"""What is due of a run that is held, written: rows made and moved, steps begun, the run ended.

The rows are read once. What is written is noted in them as well, so that what became due by it is found without reading
them again: a wake-up is one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.db import OperationalError, transaction

from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.pipelines import approvals, cache, graph, step_start
from inference.pipelines.advance import GOOD, STEP_ITEM, Action, Row, State, Wishes, advance
from inference.pipelines.models import PipelineRun, StepRun
from workers.core.clock import now

log = logging.getLogger(__name__)

MAX_BEGUN = 20  # steps begun in one transaction, so that others who write do not wait long
MAX_WRITTEN = 500  # rows made or moved in one
MAX_ROUNDS = 50  # times that one asks what is due
MAX_ROWS = 10_000  # of one run, items counted


class Moved(Exception):
    """A row has changed since it was read: the transaction is rolled back and tried again."""


def move(step: StepRun, state: State, **columns: Any) -> None:
    """Change a row, provided that its state has not changed since it was read.

    Raises:
        Moved: it does not.
    """
    over = {} if state in (State.STARTED, State.ASKING) else {"ended_at": now(), "look_at": None}
    columns = {"state": state, **columns, **over}
    if not StepRun.objects.filter(pk=step.pk, state=step.state).update(**columns):
        raise Moved(f"step run={step.pk} is not {step.state} any more")
    for name, value in columns.items():
        setattr(step, name, value)


class Due:
    """What is due of one run that is held.

    Attributes:
        written: how many rows were made or moved, and steps begun.
    """

    def __init__(self, run: PipelineRun, spec: graph.Spec, steps: Sequence[StepRun]) -> None:
        self.run, self.spec = run, spec
        self.newest: dict[tuple[str, int], StepRun] = {}
        for step in sorted(steps, key=lambda row: row.attempt):
            self.newest[step.step, step.item] = step
        self.found = cache.Lookup(run, spec, self.newest)
        self.wishes = Wishes(
            cancel=run.cancel, skip=frozenset(run.skip), limit=run.limit, fail_fast=run.fail_fast
        )  # fmt: skip
        self.written = self._begun = 0

    def write(self) -> bool:
        """Write all that is due, or as much as one transaction should; whether there may be more."""
        for _round in range(MAX_ROUNDS):
            rows = [_row(step) for step in self.newest.values()]
            due = advance(self.spec.steps, rows, self.wishes, self.found, max_starts=MAX_BEGUN - self._begun)
            if not due:
                return self._begun >= MAX_BEGUN
            due = due[: MAX_WRITTEN - self.written]
            self._insert([action for action in due if action.verb == "insert"])
            for action in due:
                self._apply(action)
            self.written += len(due)
            if self.written >= MAX_WRITTEN or due[-1].verb == "finish":
                return due[-1].verb != "finish"
        return True

    def _insert(self, actions: Sequence[Action]) -> None:
        made = [StepRun(run=self.run, step=action.step, item=action.item, attempt=action.attempt) for action in actions]
        for step in StepRun.objects.bulk_create(made):
            self.newest[step.step, step.item] = step

    def _apply(self, action: Action) -> None:
        if action.verb == "insert":
            return
        if action.verb == "finish":
            self._finish(action.state)
            return
        step, of = self.newest[action.step, action.item], self.spec.steps[action.step]
        if action.verb == "begin":
            self._begun += 1
            self._start_step(step)
        elif action.state is State.CACHED:
            earlier = self.found.get(step)
            move(
                step, State.CACHED, outputs=cache.as_own(earlier.outputs, step.step), answer=earlier.answer,
                cached_from=earlier, cache_key=earlier.cache_key, started_at=now(),
            )  # fmt: skip
        elif action.state is State.STARTED:
            self._open_list(step)
        elif action.item == STEP_ITEM and of.each is not None and action.state in (State.OK, State.FAILED):
            move(step, action.state, **self._gathered(of, step, action.state))
        else:
            move(step, action.state, message=self._why_not(of, action.state))

    def _why_not(self, of: graph.Step, state: State) -> Message:
        """Return why a step is skipped; empty for a cancelled one."""
        if state is not State.SKIPPED:
            return Message()
        if of.key in self.run.skip:
            return wording.message("pipeline.skipped_by_person")
        condition = self.newest.get((of.when.step, STEP_ITEM)) if of.when else None
        if of.when and condition is not None and condition.answer and condition.answer != of.when.port:
            return wording.message("pipeline.other_answer", step=of.when.step, answer=condition.answer)
        missing = [name for name in of.needs if (row := self.newest.get((name, STEP_ITEM))) and row.state not in GOOD]
        return wording.message("pipeline.left_out_with", steps=", ".join(missing[:5])) if missing else Message()

    def _open_list(self, step_row: StepRun) -> None:
        """Start a step for each item, unless the run would have too many rows."""
        counts = {}
        for key, of in self.spec.steps.items():
            row = self.newest.get((key, STEP_ITEM))
            if of.each is not None and row is not None and (row.state != State.WAITING or row is step_row):
                source = self.newest.get((of.each.step, STEP_ITEM))
                counts[key] = len(source.outputs.get(of.each.port) or ()) if source else 0
        count = counts[step_row.step]
        if len(self.spec.steps) + sum(counts.values()) > MAX_ROWS:
            why = wording.message("pipeline.too_many_items", count=count, most=MAX_ROWS)
            move(step_row, State.FAILED, message=why, started_at=now())
            return
        move(step_row, State.STARTED, started_at=now())

    def _gathered(self, of: graph.Step, step_row: StepRun, state: State) -> dict[str, Any]:
        """Return the outputs of a step that ran for each item: lists in the order of the items, without failed ones."""
        first = (step_row.attempt - 1) * (of.retries + 1)
        items = sorted((item, row) for (key, item), row in self.newest.items() if key == of.key and item != STEP_ITEM)
        rows = [row for _item, row in items if row.attempt > first]
        good = [row for row in rows if row.state in GOOD]
        ports = sorted({port for row in good for port in row.outputs})
        outputs = {port: [row.outputs[port] for row in good if port in row.outputs] for port in ports}
        failed = len(rows) - len(good)
        message = wording.message("pipeline.items_failed", count=failed, of=len(rows)) if failed else Message()
        return {"outputs": outputs if state is State.OK else {}, "message": message}

    def _start_step(self, step: StepRun) -> None:
        """Start the work of a step in the same transaction: both the job and the row, or neither."""
        run, key = self.run, self.found.key_of(step)
        try:
            with transaction.atomic():
                begun = step_start.start_step(run, self.spec, step, self.newest)
        except DomainError as exc:
            move(step, State.FAILED, message=wording.of_error(exc), started_at=now())
            return
        except OperationalError:
            raise
        except Exception as exc:  # a fault of ours fails the step, never the loop
            log.exception("pipeline run=%s step=%s did not begin", run.pk, step.step)
            why = wording.message("pipeline.broke", why=f"{type(exc).__name__}: {exc}")
            move(step, State.FAILED, message=why, started_at=now())
            return
        columns: dict[str, Any] = {
            "job": begun.job, "kept": dict(begun.stored), "cache_key": key, "started_at": now(),
            "look_at": now() + begun.look_again if begun.look_again else None,
        }  # fmt: skip
        if begun.done is not None:
            done = begun.done
            columns |= {"outputs": dict(done.outputs), "answer": done.answer, "message": done.message}
            move(step, State.OK, **columns)
        else:
            move(step, State.ASKING if begun.asks else State.STARTED, **columns)

    def _finish(self, state: State) -> None:
        wholes = [row for (_step, item), row in sorted(self.newest.items()) if item == STEP_ITEM]
        failed = [row.step for row in wholes if row.state == State.FAILED]
        refused = [row.step for row in wholes if row.state == State.OK and row.answer == approvals.REFUSED]
        message = Message()
        if state is State.FAILED:
            message = wording.message("pipeline.failed", steps=", ".join(failed[:10]))
        elif state is State.OK and refused:
            message = wording.message("pipeline.refused_at", steps=", ".join(refused[:10]))
        columns: dict[str, Any] = {"state": state, "message": message, "ended_at": now()}
        ended = PipelineRun.objects.filter(pk=self.run.pk, state=PipelineRun.State.RUNNING).update(**columns)
        if ended and state is not State.CANCELLED:
            _announce(self.run, state, message)


def _row(step: StepRun) -> Row:
    lengths = {port: len(value) for port, value in step.outputs.items() if isinstance(value, list)}
    return Row(step.step, step.item, step.attempt, State(step.state), step.answer, lengths)


def _announce(run: PipelineRun, state: State, message: Message) -> None:
    kind, code = ("failed", "pipeline.news_failed") if state is State.FAILED else ("finished", "pipeline.news_ok")
    title = wording.message(code, name=run.pipeline.name, number=run.number)
    notify(
        run.owner, kind, title=title, text=message, url=f"/pipelines/runs/{run.pk}/",
        key=f"pipeline-run-{run.pk}-{run.revision}",
    )  # fmt: skip
