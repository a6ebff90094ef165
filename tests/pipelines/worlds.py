"""Made-up pipelines, and a world in which schedulers die, read stale rows and hear every message twice."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from inference.pipelines.advance import FINAL, STEP_ITEM, Action, Row, State, Wishes, advance
from inference.pipelines.graph import Link, Step

Key = tuple[str, int, int]
FREE = Wishes(limit=10_000)


def chance(*parts: object) -> float:
    """A number from 0 to 1 that the parts decide."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


@dataclass
class World:
    """Rows with a unique key and compare-and-set, and jobs whose ends a hash decides."""

    steps: Mapping[str, Step]
    fate: int
    failing: float
    wishes: Wishes = FREE
    rows: dict[Key, Row] = field(default_factory=dict)
    begun: Counter[Key] = field(default_factory=Counter)
    ended: State | None = None
    most_at_once: int = 0

    def snapshot(self) -> list[Row]:
        return list(self.rows.values())

    def plan(self, rows: list[Row]) -> list[Action]:
        return advance(self.steps, rows, self.wishes)

    def apply(self, actions: list[Action], rows: list[Row]) -> None:
        before = {(row.step, row.item, row.attempt): row.state for row in rows}
        for action in actions:
            key = (action.step, action.item, action.attempt)
            if action.verb == "insert":
                self.rows.setdefault(key, Row(*key, State.WAITING))
            elif action.verb == "finish":
                if not [planned for planned in self.plan(self.snapshot()) if planned.verb != "finish"]:
                    self.ended = action.state
            elif self.rows[key].state == before[key]:
                self.rows[key] = replace(self.rows[key], state=action.state)
                if action.verb == "begin":
                    self.begun[key] += 1
        self.most_at_once = max(self.most_at_once, len(self.at_work()))

    def at_work(self) -> list[Key]:
        return [
            key for key, row in self.rows.items()
            if row.state is State.STARTED and (key[1] != STEP_ITEM or self.steps[key[0]].each is None)
        ]  # fmt: skip

    def end_job(self, key: Key) -> None:
        """Report its end, perhaps twice: only a running row accepts it."""
        if self.rows[key].state is not State.STARTED:
            return
        if self.wishes.cancel:
            self.rows[key] = replace(self.rows[key], state=State.CANCELLED)
        elif chance(self.fate, key) < self.failing:
            self.rows[key] = replace(self.rows[key], state=State.FAILED)
        else:
            answer = "passed" if chance(self.fate, key, "answer") < 0.6 else "refused"
            count = int(chance(self.fate, key, "count") * 5)
            self.rows[key] = replace(self.rows[key], state=State.OK, answer=answer, lengths={"items": count})

    def play(self, rng: random.Random, *, wild: bool = True) -> None:
        """Let things happen in a random order until the run has ended."""
        stale: list[list[Row]] = []
        for _turn in range(5000):
            if self.ended:
                return
            what = rng.random()
            if what < 0.4 or (not wild and what < 0.6):
                rows = self.snapshot()
                actions = self.plan(rows)
                if wild and rng.random() < 0.25:
                    actions = actions[: rng.randrange(len(actions) + 1)]  # killed in the middle
                self.apply(actions, rows)
            elif what < 0.5:
                stale.append(self.snapshot())  # a second one reads and falls asleep
            elif what < 0.6 and stale:
                rows = stale.pop(rng.randrange(len(stale)))
                self.apply(self.plan(rows), rows)
            elif work := self.at_work():
                key = rng.choice(work)
                self.end_job(key)
                self.end_job(key)
        raise AssertionError("It does not end.")

    def outcome(self) -> dict[tuple[str, int], tuple[State, str]]:
        last = {(row.step, row.item): row for row in sorted(self.rows.values(), key=lambda row_: row_.attempt)}
        return {key: (row.state, row.answer) for key, row in last.items()}

    def wholes(self) -> dict[str, Row]:
        """The newest row of each step."""
        rows = sorted(self.rows.values(), key=lambda row_: row_.attempt)
        return {row.step: row for row in rows if row.item == STEP_ITEM}

    def open_rows(self) -> Iterator[Row]:
        return (row for row in self.rows.values() if row.state not in FINAL)


@st.composite
def pipelines(draw: st.DrawFn) -> dict[str, Step]:
    """Up to nine steps with needs, conditions, for-each, rules and retries."""
    steps: dict[str, Step] = {}
    for number in range(draw(st.integers(1, 9))):
        before = list(steps)
        plain = [key for key in before if steps[key].each is None]
        needs = draw(st.lists(st.sampled_from(before), unique=True, max_size=3)) if before else []
        gate = draw(st.sampled_from(plain)) if plain and draw(st.integers(0, 3)) == 0 else None
        source = draw(st.sampled_from(plain)) if plain and draw(st.integers(0, 3)) == 0 else None
        key = f"s{number}"
        steps[key] = Step(
            key, "fake", after=tuple(sorted(needs)),
            when=Link(gate, draw(st.sampled_from(["passed", "refused"]))) if gate else None,
            each=Link(source, "items") if source else None,
            rule=draw(st.sampled_from(["all_ok", "all_ok", "all_done", "any_failed"])),
            retries=draw(st.integers(0, 2)), tolerate=draw(st.sampled_from([0.0, 0.5])),
        )  # fmt: skip
    return steps
