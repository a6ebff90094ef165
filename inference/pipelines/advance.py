"""What a run of a pipeline does next. Pure: rows in, actions out; no clock, no database, no memory between calls.

The caller holds the run's row, reads its step rows, applies the actions in the same transaction, and calls again until
nothing is due. Every action names what it makes by (step, item, attempt), whose unique key turns a second application
into nothing. Whoever dies between two actions loses none: each call compares what should be there with what is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from inference.pipelines.graph import Step, after

STEP_ITEM = -1  # the item of a step's own row
Cached = Container[tuple[str, int]]


class State(StrEnum):
    """What became of one execution of a step, or of one of its items."""

    WAITING = "waiting"  # nothing was begun
    ASKING = "asking"  # a person has to decide
    STARTED = "started"  # its job says how far it is
    OK = "ok"
    CACHED = "cached"  # an earlier result with the same key is used
    FAILED = "failed"
    SKIPPED = "skipped"  # a condition, a missing input, an answer or a person ruled it out
    CANCELLED = "cancelled"


GOOD = frozenset({State.OK, State.CACHED})
FINAL = GOOD | {State.FAILED, State.SKIPPED, State.CANCELLED}


@dataclass(frozen=True, slots=True)
class Row:
    """One execution of a step (item -1) or of one item of a step with `each`.

    Attributes:
        answer: the signal that it gave: "passed".
        lengths: of its outputs that are lists, how many items each has.
    """

    step: str
    item: int
    attempt: int
    state: State
    answer: str = ""
    lengths: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Action:
    """Make one row, move one, or end the run. `begin` is a move to STARTED: the caller begins what the step does."""

    verb: Literal["insert", "begin", "set", "finish"]
    step: str = ""
    item: int = STEP_ITEM
    attempt: int = 1
    state: State = State.WAITING


@dataclass(frozen=True, slots=True)
class Wishes:
    """What users requested of the run; requests and facts are in separate columns.

    Attributes:
        limit: executions of the run that may be under way at once; those that wait for people count for nothing.
        fail_fast: begin nothing more once a step has failed for good, but what waits for failures.
    """

    cancel: bool = False
    skip: frozenset[str] = frozenset()
    limit: int = 16
    fail_fast: bool = False


def round_of(step: Step, attempt: int) -> int:
    """Rounds count from 0: a person's retry begins a new one of 1 + retries attempts."""
    return (attempt - 1) // (step.retries + 1)


def first_of(step: Step, round_: int) -> int:
    """The first attempt of a round."""
    return round_ * (step.retries + 1) + 1


def is_last(step: Step, attempt: int) -> bool:
    """Whether no attempt follows in its round."""
    return attempt % (step.retries + 1) == 0


def newest_of(rows: Iterable[Row]) -> dict[tuple[str, int], Row]:
    """Return the newest attempt of each step and item."""
    newest: dict[tuple[str, int], Row] = {}
    for row in rows:
        earlier = newest.get((row.step, row.item))
        if earlier is None or row.attempt > earlier.attempt:
            newest[row.step, row.item] = row
    return newest


class _Run:
    """One call's view of the rows."""

    def __init__(self, steps: Mapping[str, Step], rows: Sequence[Row], wishes: Wishes) -> None:
        self.steps, self.wishes = steps, wishes
        self.newest = newest_of(rows)
        self.items: dict[str, list[Row]] = {}
        for (key, item), row in sorted(self.newest.items()):
            if item != STEP_ITEM and key in steps and self._is_of_round(steps[key], row):
                self.items.setdefault(key, []).append(row)
        self.again = {key for key in steps if self._tries_again(steps[key])}
        under_way = (row for row in self.newest.values() if row.state is State.STARTED)
        self.room = wishes.limit - sum(self._is_work(row) for row in under_way)
        self.failed = any(
            row.state is State.FAILED and row.item == STEP_ITEM and key not in self.again
            for (key, _item), row in self.newest.items()
        )

    def _is_of_round(self, step: Step, row: Row) -> bool:
        step_row = self.newest.get((step.key, STEP_ITEM))
        return step_row is not None and round_of(step, row.attempt) == step_row.attempt - 1

    def _tries_again(self, step: Step) -> bool:
        """A failure with attempts left is no end, even before the row of its next attempt is there."""
        row = self.newest.get((step.key, STEP_ITEM))
        return (
            row is not None and row.state is State.FAILED and step.each is None
            and not is_last(step, row.attempt) and not self.wishes.cancel
        )  # fmt: skip

    def _is_work(self, row: Row) -> bool:
        """A step with `each` does nothing itself: its items do."""
        return row.item != STEP_ITEM or row.step not in self.steps or self.steps[row.step].each is None

    def step_row(self, key: str) -> Row | None:
        return self.newest.get((key, STEP_ITEM))


def advance(
    steps: Mapping[str, Step],
    rows: Sequence[Row],
    wishes: Wishes = Wishes(),
    cached: Cached = frozenset(),
    max_starts: int | None = None,
) -> list[Action]:
    """Return everything that is due now, in a stable order; [] means: wait for an event.

    Args:
        steps: the run's own copy of the pipeline, without circles.
        rows: all rows of the run, in any order.
        cached: steps and items whose results were found; the caller looks keys up and knows the outputs. Asked for
            those alone that could begin at once.
        max_starts: how many may start now, within the limit; None: as many as the limit allows.
    """
    run = _Run(steps, rows, wishes)
    if max_starts is not None:
        run.room = min(run.room, max_starts)
    actions: list[Action] = []
    for key in sorted(steps):
        due = _due(run, steps[key], cached)
        run.room -= sum(action.verb == "begin" and _counts(steps[key], action) for action in due)
        actions += due
    if not actions and (end := _end(run)) is not None:
        actions.append(Action("finish", state=end))
    return actions


def _counts(step: Step, action: Action) -> bool:
    return action.item != STEP_ITEM or step.each is None


def _end(run: _Run) -> State | None:
    """What the run ends as; None while a row is not final."""
    wholes = [run.step_row(key) for key in run.steps]
    if not all(row is not None and row.state in FINAL for row in wholes):
        return None
    ends = {row.state for row in wholes if row is not None}
    if State.CANCELLED in ends:
        return State.CANCELLED
    return State.FAILED if State.FAILED in ends else State.OK


def _due(run: _Run, step: Step, cached: Cached) -> list[Action]:
    row, items = run.step_row(step.key), run.items.get(step.key, [])
    if row is None:
        return [Action("insert", step.key)]
    if row.state in FINAL and step.key not in run.again:
        return []
    if run.wishes.cancel:
        return _cancelled(step, row, items)
    if row.state is State.FAILED:
        return [Action("insert", step.key, STEP_ITEM, row.attempt + 1)]
    if step.key in run.wishes.skip and row.state in (State.WAITING, State.ASKING):
        return [_set(row, State.SKIPPED)]
    if row.state is State.STARTED and step.each is not None:
        source = run.step_row(step.each.step)
        return _items(run, step, row, items, source.lengths.get(step.each.port, 0) if source else 0, cached)
    if row.state in (State.STARTED, State.ASKING):
        return []
    verdict = _verdict(run, step)
    if verdict is None:
        return []
    if verdict is State.SKIPPED:
        return [_set(row, State.SKIPPED)]
    if step.each is not None:
        return [_set(row, State.STARTED)]  # its items come from the list itself
    return _begun(step, row, cached, run.room)


def _cancelled(step: Step, row: Row, items: Sequence[Row]) -> list[Action]:
    """Start nothing; end what waits; end the step once none of its items is running."""
    waiting = [item for item in [*items, row] if item.state in (State.WAITING, State.ASKING)]
    if waiting:
        return [_set(item, State.CANCELLED) for item in waiting if item is not row or step.each is None or not items]
    if any(item.state is State.STARTED for item in items) or (row.state is State.STARTED and step.each is None):
        return []  # its job is being stopped
    return [_set(row, State.CANCELLED)] if row.state is State.STARTED else []


def _verdict(run: _Run, step: Step) -> State | None:
    """None: wait. SKIPPED: never. STARTED: now."""
    states: dict[str, State] = {}
    for source in step.sources:
        row = run.step_row(source)
        if row is None or row.state not in FINAL or source in run.again:
            return None
        states[source] = row.state
    if step.when is not None:
        condition = run.step_row(step.when.step)
        if condition is None or condition.state not in GOOD or condition.answer != step.when.port:
            return State.SKIPPED
    if step.each is not None and states[step.each.step] not in GOOD:
        return State.SKIPPED
    ends = [states[name] for name in step.needs]
    if step.rule == "any_failed":
        return State.STARTED if State.FAILED in ends else State.SKIPPED
    if step.rule == "all_ok" and (not all(end in GOOD for end in ends) or (run.wishes.fail_fast and run.failed)):
        return State.SKIPPED
    return State.STARTED


def _begun(step: Step, row: Row, cached: Cached, room: int) -> list[Action]:
    if room <= 0:
        return []
    if row.attempt == first_of(step, round_of(step, row.attempt)) and (row.step, row.item) in cached:
        return [_set(row, State.CACHED)]
    return [Action("begin", row.step, row.item, row.attempt, State.STARTED)]


def _items(run: _Run, step: Step, row: Row, items: Sequence[Row], count: int, cached: Cached) -> list[Action]:
    """Compare the rows with the list, so that a crash between two inserts loses no item."""
    numbers = {item.item for item in items}
    first = first_of(step, row.attempt - 1)
    actions = [Action("insert", step.key, number, first) for number in range(count) if number not in numbers]
    room = run.room
    for item in items:
        if item.state is State.WAITING:
            due = _begun(step, item, cached, room)
            room -= sum(action.verb == "begin" for action in due)
            actions += due
        elif item.state is State.FAILED and not is_last(step, item.attempt):
            actions.append(Action("insert", step.key, item.item, item.attempt + 1))
    if actions or not all(item.state in FINAL for item in items):
        return actions
    failed = sum(item.state is State.FAILED for item in items)
    return [_set(row, State.FAILED if failed > step.tolerate * len(items) else State.OK)]


def _set(row: Row, state: State) -> Action:
    return Action("set", row.step, row.item, row.attempt, state)


def retry_from(steps: Mapping[str, Step], rows: Sequence[Row], start: str) -> list[Action]:
    """Do `start` and everything after it again: new attempts; old rows stay as what was.

    What a cancelled run left undone comes back as well, with all that is after it: who goes on takes the cancelling
    back, and a run of which a part stayed cancelled could only end as cancelled.

    Returns [] while any of them is under way, and for steps that were never reached.
    """
    wholes = {key: row for (key, item), row in newest_of(rows).items() if item == STEP_ITEM and key in steps}
    undone = [key for key, row in wholes.items() if row.state is State.CANCELLED]
    chosen = set().union(*(after(steps, key) for key in [start, *undone]))
    newest = {key: row for key, row in wholes.items() if key in chosen}
    if start not in newest or any(row.state not in FINAL for row in newest.values()):
        return []
    return [
        Action("insert", key, STEP_ITEM, row.attempt + 1 if steps[key].each else _next_round(steps[key], row))
        for key, row in sorted(newest.items())
    ]


def _next_round(step: Step, row: Row) -> int:
    return first_of(step, round_of(step, row.attempt) + 1)
