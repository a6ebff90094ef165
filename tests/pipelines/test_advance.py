import random

from hypothesis import given, settings
from hypothesis import strategies as st

from inference.pipelines.advance import FINAL, GOOD, STEP_ITEM, State, Wishes, is_last, retry_from, round_of
from inference.pipelines.graph import Step, after
from tests.long_form import examples
from tests.pipelines.worlds import FREE, World, pipelines

worlds = st.tuples(pipelines(), st.integers(0, 9999), st.sampled_from([0.0, 0.2, 0.6]), st.integers(0, 9999))
many = settings(max_examples=examples(500, share=6), deadline=None, database=None)


def played(world, **how) -> World:
    steps, fate, failing, seed = world
    made = World(steps, fate, failing, **how)
    made.play(random.Random(seed))
    return made


@many
@given(worlds)
def test_advance_begins_nothing_twice_and_always_ends(world):
    made = played(world)

    assert set(made.begun.values()) <= {1}
    for key, item, attempt in made.begun:
        earlier = [row for (k, i, a), row in made.rows.items() if (k, i) == (key, item) and a < attempt]
        assert all(row.state is State.FAILED for row in earlier)
        assert attempt <= made.steps[key].retries + 1
    assert not list(made.open_rows())
    assert set(made.wholes()) == set(made.steps)


@many
@given(worlds, st.integers(0, 9999))
def test_advance_ends_the_same_in_any_order_of_events(world, other):
    steps, fate, failing, seed = world
    calm, wild = World(steps, fate, failing), World(steps, fate, failing)
    calm.play(random.Random(seed), wild=False)
    wild.play(random.Random(other))

    assert calm.outcome() == wild.outcome()
    assert calm.ended == wild.ended


@many
@given(worlds)
def test_advance_holds_conditions_all_or_nothing(world):
    made = played(world)
    last = made.wholes()
    for key, step in made.steps.items():
        states = [last[name].state for name in step.needs]
        may = {
            "all_ok": all(state in GOOD for state in states), "all_done": True, "any_failed": State.FAILED in states,
        }[step.rule]  # fmt: skip
        if step.when:
            may = may and last[step.when.step].state in GOOD and last[step.when.step].answer == step.when.port
        if step.each:
            may = may and last[step.each.step].state in GOOD
        assert (last[key].state is not State.SKIPPED) == may
        if not may:
            assert not any(name == key for name, _item, _attempt in made.begun)
        elif step.each:
            items = {item for name, item, _attempt in made.rows if name == key and item != STEP_ITEM}
            assert items == set(range(last[step.each.step].lengths["items"]))
            bad = sum(
                row.state is State.FAILED and is_last(step, attempt)
                for (name, item, attempt), row in made.rows.items()
                if name == key and item != STEP_ITEM
            )
            assert (last[key].state is State.FAILED) == (bad > step.tolerate * len(items))


@many
@given(worlds, st.integers(0, 60))
def test_advance_of_a_cancelled_run_begins_nothing_and_ends(world, calls):
    steps, fate, failing, seed = world
    rng, made = random.Random(seed), World(steps, fate, failing)
    for _call in range(calls):
        if not made.ended:
            rows = made.snapshot()
            made.apply(made.plan(rows), rows)
            if work := made.at_work():
                made.end_job(rng.choice(work))
    begun, over = dict(made.begun), made.ended
    made.wishes = Wishes(cancel=True)
    if not over:
        made.play(rng, wild=False)

    assert dict(made.begun) == begun
    assert made.ended
    assert not list(made.open_rows())


@many
@given(worlds, st.integers(1, 3))
def test_advance_keeps_the_limit(world, limit):
    steps, fate, failing, seed = world
    made = World(steps, fate, failing, Wishes(limit=limit))
    made.play(random.Random(seed), wild=False)

    assert made.most_at_once <= limit


@many
@given(worlds)
def test_advance_after_a_first_failure_begins_only_what_waits_for_failures(world):
    steps, fate, failing, seed = world
    made = World(steps, fate, failing, Wishes(fail_fast=True, limit=10_000))
    made.play(random.Random(seed))
    free = World(steps, fate, failing)
    free.play(random.Random(seed))

    assert made.ended
    assert not list(made.open_rows())
    if State.FAILED not in {row.state for row in free.wholes().values()}:
        assert made.outcome() == free.outcome()


@many
@given(worlds, st.data())
def test_retry_from_does_a_step_and_all_after_it_once_more(world, data):
    made = played(world)
    before, start = dict(made.begun), data.draw(st.sampled_from(sorted(made.steps)))
    actions = retry_from(made.steps, made.snapshot(), start)
    again = {action.step for action in actions}

    assert again == after(made.steps, start)
    made.apply(actions, made.snapshot())
    made.apply(actions, made.snapshot())  # the button pressed twice
    made.ended = None
    made.play(random.Random(world[3]))
    assert set(made.begun.values()) <= {1}
    assert {key for key, _item, _attempt in made.begun.keys() - before.keys()} <= again
    last = made.wholes()
    for key in again:
        step, row = made.steps[key], last[key]
        if step.each and row.state in GOOD | {State.FAILED}:
            fresh = {
                item for name, item, attempt in made.rows
                if name == key and item != STEP_ITEM and round_of(step, attempt) == row.attempt - 1
            }  # fmt: skip
            assert fresh == set(range(last[step.each.step].lengths["items"]))


@many
@given(worlds, st.integers(0, 60), st.data())
def test_retry_from_in_a_cancelled_run_brings_back_all_that_was_left_undone(world, calls, data):
    steps, fate, failing, seed = world
    rng, made = random.Random(seed), World(steps, fate, failing)
    for _call in range(calls):
        if not made.ended:
            rows = made.snapshot()
            made.apply(made.plan(rows), rows)
            if work := made.at_work():
                made.end_job(rng.choice(work))
    made.wishes = Wishes(cancel=True)
    if not made.ended:
        made.play(rng, wild=False)
    undone = [key for key, row in made.wholes().items() if row.state is State.CANCELLED]
    start, before = data.draw(st.sampled_from(sorted(steps))), dict(made.begun)
    actions = retry_from(steps, made.snapshot(), start)
    again = {action.step for action in actions}

    assert again == set().union(*(after(steps, key) for key in [start, *undone]))
    made.apply(actions, made.snapshot())
    made.wishes, made.ended = FREE, None
    made.play(rng)
    assert State.CANCELLED not in {made.ended, *(row.state for row in made.wholes().values())}
    assert set(made.begun.values()) <= {1}
    assert {key for key, _item, _attempt in made.begun.keys() - before.keys()} <= again


def test_retry_from_refuses_while_something_is_under_way():
    steps, seed = {"a": _step("a"), "b": _step("b", "a")}, 1
    made = World(steps, seed, 0.0)
    for _call in range(3):
        rows = made.snapshot()
        made.apply(made.plan(rows), rows)

    assert made.rows["a", STEP_ITEM, 1].state is State.STARTED
    assert retry_from(steps, made.snapshot(), "a") == []
    assert State.STARTED not in FINAL


def _step(key, *needs):
    return Step(key, "fake", after=needs)
