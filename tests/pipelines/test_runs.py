from datetime import timedelta

import pytest
from django.db import OperationalError

from aiplatform import env
from aiplatform.lib.errors import Invalid, NotAllowed
from inference.pipelines import approvals, checks, graph, loop, pruning, run_presentation, run_updates, runs, writing
from inference.pipelines.models import PipelineRun, StepApproval, StepRun
from tests.pipelines.made import again, begun, command, complete, end, pipeline, states, step
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]

GATED = {
    "train": command(),
    "gate": {"kind": "gate", "with": {"rule": "AP50 >= 0.8"}, "from": {"figures": "train.figures"}},
    "ship": command("ship", when="gate.passed"),
    "tell": {"kind": "notify", "with": {"text": "not good enough"}, "when": "gate.refused"},
}


def test_run_goes_the_way_that_its_gate_says(alice):
    run = begun(alice, GATED)
    assert states(run) == {"train": "started", "gate": "waiting", "ship": "waiting", "tell": "waiting"}

    complete(run, "train", figures={"ap50": 0.91})
    assert states(run) == {"train": "ok", "gate": "ok", "ship": "started", "tell": "skipped"}
    assert str(step(run, "gate").message) == "AP50 >= 0.8, with AP50 = 0.91"

    complete(run, "ship")
    assert run.state == "ok"
    assert run.ended_at is not None


def test_run_fails_where_a_gate_names_a_figure_that_nobody_measured(alice):
    run = begun(alice, GATED)
    complete(run, "train", figures={"mAP": 0.91})

    assert states(run)["gate"] == "failed"
    assert "AP50" in str(step(run, "gate").message)
    assert (run.state, str(run.message)) == ("failed", "These steps failed: gate.")


def test_run_tells_its_owner_once_and_not_of_every_job(alice):
    run = begun(alice, GATED)
    complete(run, "train", figures={"AP50": 0.1})

    assert [row.title.code for row in alice.notifications.order_by("pk")] == ["pipeline.news_step", "pipeline.news_ok"]
    assert str(run.message) == "Ended early: rejected by gate."
    assert str(step(run, "ship").message) == "gate returned “refused”."


def test_step_that_fails_tries_again_and_only_what_depends_on_it_is_left_out(alice):
    steps = {
        "bad": command("false", retries=1), "after": command(after=["bad"]), "other": command(),
        "clean": command(after=["bad"], rule="all_done"), "alarm": command(after=["bad"], rule="any_failed"),
    }  # fmt: skip
    run = begun(alice, steps)
    complete(run, "bad", event=Event.EXITED_BAD)
    assert step(run, "bad").attempt == 2
    assert states(run)["after"] == "waiting"

    complete(run, "bad", event=Event.EXITED_BAD)
    assert states(run) == {
        "bad": "failed", "after": "skipped", "other": "started", "clean": "started", "alarm": "started",
    }  # fmt: skip
    complete(run, "other", "clean", "alarm")
    assert run.state == "failed"


def test_retry_does_a_step_and_all_after_it_again(alice):
    run = begun(alice, {"one": command(), "two": command(after=["one"]), "aside": command()})
    complete(run, "one", "aside")
    complete(run, "two", event=Event.EXITED_BAD)
    assert run.state == "failed"

    PipelineRun.objects.filter(pk=run.pk).update(
        created_at=now() - timedelta(hours=9), ended_at=now() - timedelta(hours=8)
    )
    runs.retry(run, "two", by=alice)
    assert run_presentation.took_s(run) == pytest.approx(3600, abs=60)  # nothing of it ran for eight hours
    with pytest.raises(runs.NotNow):
        runs.retry(run, "two", by=alice)
    loop.advance_run(run.pk)
    assert (step(run, "two").attempt, step(run, "one").attempt) == (2, 1)
    complete(run, "two")
    assert run.state == "ok"


def test_each_runs_once_for_every_item_and_gathers_in_their_order(alice):
    steps = {
        "list": {"kind": "items", "with": {"values": [{"lr": 0.1}, {"lr": 0.2}, {"lr": 0.3}]}},
        "train": command("echo ${item.lr}", each="list.items", tolerate=0.5),
        "best": {"kind": "gate", "with": {"rule": "AP50 > 0"}, "from": {"figures": "train.figures"}},
    }
    run = begun(alice, steps, limit=2)
    assert [step(run, "train", item).state for item in range(3)] == ["started", "started", "waiting"]
    assert step(run, "train", 1).job.command.script.strip() == "echo 0.2"

    end(step(run, "train", 1).job, figures={"AP50": 0.2})
    loop.advance_run(run.pk)
    end(step(run, "train", 0).job, event=Event.EXITED_BAD)
    end(step(run, "train", 2).job, figures={"AP50": 0.3})
    loop.advance_run(run.pk)
    row = step(run, "train")
    assert [figures["values"]["AP50"] for figures in row.outputs["figures"]] == [0.2, 0.3]
    assert str(row.message) == "1 of 3 failed."
    run.refresh_from_db()
    assert run.state == "ok"


def test_cancel_stops_what_is_under_way_and_begins_nothing(alice):
    run = begun(alice, {"one": command(), "two": command(after=["one"]), "ask": {"kind": "approve"}})
    runs.cancel(run)
    loop.advance_run(run.pk)
    job = step(run, "one").job
    job.refresh_from_db()
    assert job.state == "stopped"  # it waited, so it ended at once

    from workers.execution import results

    results.publish(job.pk)
    loop.advance_run(run.pk)
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert states(run) == {"one": "cancelled", "two": "cancelled", "ask": "cancelled"}


def test_approval_is_answered_by_those_who_are_asked_and_once_each(alice, bob):
    steps = {
        "ask": {"kind": "approve", "with": {"people": "alice, bob", "needed": 2, "question": "Ship it?"}},
        "ship": command(when="ask.passed"), "back": command(when="ask.refused"),
    }  # fmt: skip
    run = begun(alice, steps)
    question = StepApproval.objects.get()
    assert states(run)["ask"] == "asking"
    assert bob.notifications.get().title.code == "pipeline.asked"

    approvals.answer(question, by=bob, answer="passed", comment="fine")
    with pytest.raises(approvals.AlreadyAnswered):
        approvals.answer(question, by=bob, answer="refused")
    loop.advance_run(run.pk)
    assert states(run)["ask"] == "asking"

    approvals.answer(question, by=alice, answer="passed")
    loop.advance_run(run.pk)
    assert states(run) == {"ask": "ok", "ship": "started", "back": "skipped"}


def test_approval_refuses_people_who_are_not_asked(alice, bob):
    begun(alice, {"ask": {"kind": "approve"}})

    with pytest.raises(NotAllowed):
        approvals.answer(StepApproval.objects.get(), by=bob, answer="passed")


def test_approval_that_nobody_answers_ends_as_it_says(alice):
    run = begun(alice, {"ask": {"kind": "approve", "with": {"hours": 1}}, "ship": command(when="ask.passed")})
    StepApproval.objects.update(expires_at=now() - timedelta(seconds=1))

    assert loop.advance_due() == 1
    run.refresh_from_db()
    assert (states(run), run.state) == ({"ask": "ok", "ship": "skipped"}, "ok")


def test_skip_leaves_out_a_step_that_waits(alice):
    run = begun(alice, {"one": command(), "two": command(after=["one"]), "three": command(after=["two"])})
    runs.skip(run, "two")
    with pytest.raises(runs.NotNow):
        runs.skip(run, "one")
    complete(run, "one")

    assert (states(run), run.state) == ({"one": "ok", "two": "skipped", "three": "skipped"}, "ok")


def test_sweep_finds_what_messages_would_have_said_and_nothing_else(alice):
    run = begun(alice, {"one": command(), "two": command(after=["one"])})
    assert loop.advance_due() == 0

    end(step(run, "one").job)
    assert loop.advance_due() == 1
    assert states(run)["two"] == "started"
    assert loop.advance_due() == 0


def test_a_kill_between_two_transactions_begins_nothing_twice(alice, monkeypatch):
    steps = {"list": {"kind": "items", "with": {"values": list(range(60))}}, "one": command(each="list.items")}
    run = begun(alice, {**steps}, limit=50)
    jobs = Job.objects.count()

    class Killed(BaseException):
        pass

    def killed(*_args):
        raise Killed

    for _time in range(5):
        for item in (0, 1):
            row = StepRun.objects.filter(run=run, step="one", state="started", item__gte=0).order_by("item")[item]
            end(row.job)
        with monkeypatch.context() as patch:
            patch.setattr(run_updates.Due, "_start_step", killed)
            with pytest.raises(Killed):
                loop.advance_run(run.pk)
        loop.advance_run(run.pk)
    assert Job.objects.count() == jobs + 10
    rows = StepRun.objects.filter(run=run, step="one", item__gte=0)
    assert rows.count() == 60
    assert rows.exclude(job=None).values("job").distinct().count() == rows.exclude(job=None).count() == 60


def test_a_step_is_begun_once_where_the_database_refuses_its_row_first(alice, monkeypatch):
    refusals = iter([OperationalError("database is locked"), run_updates.Moved()])

    def refusing(step, state, **columns):
        if state == "started" and (refusal := next(refusals, None)):
            raise refusal
        move(step, state, **columns)

    move = run_updates.move
    monkeypatch.setattr(run_updates, "move", refusing)
    run = begun(alice, {"one": command()})
    assert (states(run), Job.objects.count()) == ({"one": "started"}, 1)

    refusals = iter([OperationalError("deadlock detected")] * 3)
    other = runs.start(user=alice, version=run.version)
    assert loop.advance_due() == 1  # one run that the database refuses holds up no other
    assert Job.objects.count() == 1
    assert loop.advance_due() == 1
    assert (states(other), Job.objects.count()) == ({"one": "started"}, 2)


def test_runs_that_are_old_go_and_those_that_still_serve_stay(alice, monkeypatch):
    from inference.pipelines.kinds import KINDS

    monkeypatch.setattr(KINDS.get("command"), "acts", False)
    monkeypatch.setattr(env, "PIPELINE_RUNS_KEPT", 1)
    made = pipeline(alice, {"one": command()})
    useless = again(made, alice)
    complete(useless, "one", event=Event.EXITED_BAD)
    serving = again(made, alice)
    complete(serving, "one")
    waiting = again(made, alice, use_cache=False)
    cached = again(made, alice)
    assert (cached.state, step(cached, "one").cached_from.run) == ("ok", serving)
    assert pruning.prune() == 0

    PipelineRun.objects.exclude(ended_at=None).update(ended_at=now() - timedelta(days=181))
    assert pruning.prune() == 1
    assert set(made.runs.all()) == {serving, waiting, cached}

    newest = again(made, alice, use_cache=False)
    complete(newest, "one")
    assert [pruning.prune(), pruning.prune(), pruning.prune()] == [1, 1, 0]  # what took a result, then what gave it
    assert set(made.runs.all()) == {waiting, newest}


def test_begin_refuses_everything_that_is_wrong_at_once(alice):
    made = pipeline(alice, {
        "data": {"kind": "dataset", "with": {"dataset": "nowhere"}},
        "gate": {"kind": "gate", "with": {"rule": "AP50 >="}},
        "odd": {"kind": "magic"},
        "note": {"kind": "notify", "with": {"text": "${who}", "people": "nobody"}, "when": "gate.data"},
    })  # fmt: skip

    with pytest.raises(Invalid) as refused:
        runs.start(user=alice, version=writing.newest_or_refused(made))
    blamed = [error.blamed for error in refused.value.every]
    assert sorted(set(blamed)) == ["data", "gate", "note", "odd"]
    assert len(blamed) >= 5


def test_a_second_run_does_no_evaluation_again_and_says_from_where_its_figures_are(alice, monkeypatch):
    from inference.pipelines.kinds import KINDS

    monkeypatch.setattr(KINDS.get("command"), "acts", False)
    made = pipeline(alice, {"one": command(), "two": command("other", after=["one"])})
    first = again(made, alice)
    complete(first, "one", figures={"AP50": 0.5})
    complete(first, "two")

    second = again(made, alice)
    assert (states(second), second.state) == ({"one": "cached", "two": "cached"}, "ok")
    assert step(second, "one").cached_from.run == first
    assert step(second, "one").outputs["figures"]["values"] == {"AP50": 0.5}
    assert states(again(made, alice, use_cache=False))["one"] == "started"


def test_a_step_runs_for_each_result_of_another_and_gets_the_one_of_its_item(alice):
    steps = {
        "list": {"kind": "items", "with": {"values": [1, 2, 3]}},
        "train": command("echo ${item}", each="list.items"),
        "gate": {"kind": "compare", "from": {"figures": "train.figures"}, "each": "train.figures",
                 "with": {"champion": "cells@champion", "first": True}},
    }  # fmt: skip
    apart = {**steps, "gate": {name: value for name, value in steps["gate"].items() if name != "each"}}
    problems = checks.problems(graph.parse({"steps": apart}), alice)
    assert [(entry.step, entry.field) for entry in problems] == [("gate", "figures")]

    run = begun(alice, steps)
    for item in range(3):
        end(step(run, "train", item).job, figures={"AP50": item / 10})
    loop.advance_run(run.pk)
    messages = [str(step(run, "gate", item).message) for item in range(3)]
    assert all(
        "do not come from an evaluation" in entry for entry in messages
    )  # each was begun with figures, of a command
