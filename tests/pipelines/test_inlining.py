"""Pipelines inside pipelines: real runs of what is put in its place."""

import pytest

from aiplatform.lib.errors import Invalid
from inference.pipelines import graph, inlining, loop, runs, writing
from inference.pipelines.models import Pipeline
from tests.factories import datasets as data
from tests.pipelines.made import again, command, complete, pipeline, states, step
from workers.core.models import Job
from workers.core.states import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


def inside(name="cells", **fields):
    return {"kind": "pipeline", "with": {"pipeline": name, **fields.pop("with_", {})}, **fields}


def two_steps(alice):
    steps = {
        "train": command("train ${lr}"),
        "gate": {"kind": "gate", "with": {"rule": "AP50 > 0.5"}, "from": {"figures": "train.figures"}},
        "good": command("good", when="gate.passed"),
        "bad": command("bad", when="gate.refused"),
        "which": {"kind": "condition", "with": {"rule": "lr > 0.3"}, "after": ["train"]},
    }
    return pipeline(alice, steps, lr=0.1)


def test_pipeline_inside_runs_as_a_part_with_parameters_of_its_own(alice):
    two_steps(alice)
    made = pipeline(alice, {
        "first": command("first"),
        "sub": inside(with_={"parameters": {"lr": "${rate}"}, "result": "train"}, after=["first"]),
        "judge": {"kind": "gate", "with": {"rule": "sub_train.AP50 > 0.5"}, "from": {"figures": "sub.figures"}},
        "last": command("last ${rate}", after=["sub"]),
    }, name="whole", rate=0.5)  # fmt: skip
    run = again(made, alice)
    assert states(run)["sub/begin"] == "waiting"
    complete(run, "first")
    assert step(run, "sub/train").job.command.script.strip() == "train 0.5"

    complete(run, "sub/train", figures={"AP50": 0.9})
    assert {name: states(run)[name] for name in ("sub/good", "sub/bad", "sub", "judge", "last")} == {
        "sub/good": "started", "sub/bad": "skipped", "sub": "waiting", "judge": "waiting", "last": "waiting",
    }  # fmt: skip
    assert step(run, "sub/which").answer == "yes"
    complete(run, "sub/good")
    assert (states(run)["sub"], step(run, "judge").answer, states(run)["last"]) == ("ok", "passed", "started")


def test_failure_inside_is_one_of_the_whole_and_retry_of_the_whole_begins_inside(alice):
    two_steps(alice)
    made = pipeline(alice, {
        "sub": inside(), "alarm": command("alarm", after=["sub"], rule="any_failed"), "on": command(after=["sub"]),
    }, name="whole")  # fmt: skip
    run = again(made, alice)
    complete(run, "sub/train", event=Event.EXITED_BAD)
    assert {name: states(run)[name] for name in ("sub/gate", "sub", "alarm", "on")} == {
        "sub/gate": "skipped", "sub": "failed", "alarm": "started", "on": "skipped",
    }  # fmt: skip
    assert str(step(run, "sub").message) == "These nested steps failed: sub/train."
    complete(run, "alarm")
    assert run.state == "failed"

    runs.retry(run, "sub", by=alice)
    loop.advance_run(run.pk)
    assert (step(run, "sub/train").attempt, states(run)["sub/train"]) == (2, "started")


def test_skipped_or_ruled_out_pipeline_begins_nothing_inside_clean_up_neither(alice):
    pipeline(alice, {"one": command(), "clean": command(after=["one"], rule="all_done")})
    made = pipeline(alice, {"bad": command(), "sub": inside(after=["bad"]), "other": inside()}, name="whole")
    run = runs.start(user=alice, version=writing.newest_or_refused(made))
    runs.skip(run, "other")
    loop.advance_run(run.pk)
    complete(run, "bad", event=Event.EXITED_BAD)

    left = {name: state for name, state in states(run).items() if name != "bad"}
    assert set(left.values()) == {"skipped"}
    assert Job.objects.count() == 1


def test_what_feeds_it_stands_for_its_inputs_through_several_levels(alice):
    version = data.version(data.dataset(alice, "cells"))
    data.version(data.dataset(alice, "alone"))
    innermost = {
        "in": {"kind": "input", "with": {"dataset": "alone"}},
        "look": {"kind": "command", "with": {"command": "look"}, "from": {"data": "in.data"}, "after": ["in"]},
    }
    pipeline(alice, innermost, name="innermost")
    middle = {"in": {"kind": "input", "with": {"dataset": "alone"}}, "deep": inside("innermost")}
    middle["deep"]["from"] = {"data": "in.data"}
    pipeline(alice, middle, name="middle")
    outer = {"cells": {"kind": "dataset", "with": {"dataset": "cells"}}, "sub": inside("middle")}
    outer["sub"]["from"] = {"data": "cells.data"}
    made = pipeline(alice, outer, name="outer")

    run = again(made, alice)
    look = graph.parse(run.spec, of_run=True).steps["sub/deep/look"]
    assert look.inputs == {"data": (graph.Link("cells", "data"),)}
    assert set(look.after) == {"sub/deep/begin"}
    assert states(run)["sub/deep/look"] == "started"
    assert "sub/in" not in states(run)
    assert str(version) == step(run, "cells").outputs["data"]["label"]
    alone = again(Pipeline.objects.get(name="innermost"), alice)
    assert (step(alone, "in").outputs["data"]["label"], states(alone)["look"]) == ("alone v1", "started")


def test_check_refuses_circles_depth_numbers_lists_and_what_is_not_visible(alice, bob):
    def refused(steps, **how):
        with pytest.raises(Invalid) as caught:
            runs.start(user=how.pop("by", alice), version=writing.newest_or_refused(pipeline(alice, steps, **how)))
        return caught.value.sentences

    two_steps(alice)
    own = pipeline(alice, {"sub": inside("own")}, name="own")
    with pytest.raises(Invalid, match="contains itself"):
        runs.start(user=alice, version=writing.newest_or_refused(own))
    listed = {"items": {"kind": "items", "with": {"values": [1, 2]}}, "sub": inside(each="items.items")}
    assert "A nested pipeline runs once. Use the list in steps inside it." in refused(listed, name="listed")
    assert "Pipeline “cells” not found." in refused({"sub": inside()}, name="hidden", by=bob)
    assert "This pipeline has no parameter lrr." in refused(
        {"sub": inside(with_={"parameters": {"lrr": 1}})}, name="odd"
    )
    used = {"sub": inside(), "gate": {"kind": "gate", "with": {"rule": "a > 1"}, "from": {"figures": "sub.figures"}}}
    assert "Several final steps exist. Name in “result” the one whose" in refused(used, name="used")
    used["sub"]["with"]["result"] = "gone"
    assert "Step “gone” not found inside" in refused(used, name="used2")
    for level in range(4):
        pipeline(alice, {"sub": inside(f"l{level - 1}" if level else "cells")}, name=f"l{level}")
    assert "at most 4 levels deep" in refused({"sub": inside("l3")}, name="l4")
    pipeline(alice, {f"s{n}": command() for n in range(700)}, name="large")
    assert "more than 2000 steps" in refused({f"s{n}": inside("large") for n in range(3)}, name="larger")


def test_problems_inside_are_said_of_the_step_that_people_see(alice):
    steps = {"in": {"kind": "input"}, "judge": {"kind": "evaluate", "from": {"data": "in.data", "model": "in.model"}}}
    pipeline(alice, steps, name="judging")
    data.version(data.dataset(alice, "cells"))
    outer = {"cells": {"kind": "dataset", "with": {"dataset": "cells"}}, "sub": inside("judging")}
    outer["sub"]["from"] = {"data": "cells.data"}

    from inference.pipelines import checks

    problems = checks.problems(graph.parse({"steps": outer}), alice)
    assert [(problem.step, problem.message.partition(": ")[0]) for problem in problems] == [("sub", "sub/in")]
    assert not inlining.has_inside(graph.parse({"steps": steps}))
