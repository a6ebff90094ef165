"""What may be wrong is told and keeps nothing from running; old versions are looked at and gone back to."""

from __future__ import annotations

import pytest
from django.urls import reverse

from inference.pipelines import checks, graph, pipeline_warnings, writing
from inference.pipelines.models import PipelineDraft
from tests.pipelines.made import command, pipeline


def warnings_of(rule: str, **inputs: str) -> list[str]:
    """Return the warnings about a gate after an evaluation, a comparison, a training and a command."""
    steps = {
        "judge": {"kind": "evaluate"},
        "against": {"kind": "compare"},
        "train": {"kind": "train"},
        "own": {"kind": "command"},
        "script": {"kind": "evaluate", "with": {"home_path": "judge", "start_file": "evaluate.py"}},
        "gate": {"kind": "gate", "with": {"rule": rule}, "from": {"figures": list(inputs.values())}},
    }
    problems = list(pipeline_warnings.list_warnings(graph.parse({"format": 1, "steps": steps})))
    assert all((problem.step, problem.field, problem.level) == ("gate", "rule", "warning") for problem in problems)
    return [problem.message for problem in problems]


@pytest.mark.parametrize(
    "rule",
    ["AP50 >= 0.8", "judge.ap50 > 0.5 and recall > 0.1", "threshold < 1", "map_r + miou + nme + box_ap75 > 0", "AP50"],
)
def test_figures_that_an_evaluation_gives_are_not_doubted(rule):
    assert warnings_of(rule, figures="judge.figures") == []


def test_a_misspelt_figure_is_told_with_those_near_it():
    (message,) = warnings_of("AP5O >= 0.8", figures="judge.figures")

    assert "AP5O" in message
    assert "ap50" in message
    assert warnings_of("champion.map > 0", figures="judge.figures")  # nothing is compared here
    compared = "difference.map.low > 0 and champion.exists == 1 and better.ap50 == 1 and p < 0.05 and images > 9"
    assert warnings_of(compared, figures="against.figures") == []
    assert warnings_of("differense.map > 0", figures="against.figures")


@pytest.mark.parametrize("source", ["train.figures", "own.figures", "script.figures"])
def test_nothing_is_doubted_where_any_figure_may_come(source):
    assert warnings_of("my_own > 3", figures=source) == []
    assert warnings_of("my_own > 3", one="judge.figures", other=source) == []


def test_a_warning_keeps_nothing_from_running(alice, client):
    steps = {
        "own": command(),
        "judge": {"kind": "evaluate", "from": {"model": "own.figures", "data": "own.figures"}},
        "gate": {"kind": "gate", "with": {"rule": "AP5O >= 0.8"}, "from": {"figures": "judge.figures"}},
    }
    client.force_login(alice)
    answer = client.post(
        reverse("api-pipeline-check"), {"spec": {"format": 1, "steps": steps}}, content_type="application/json"
    ).json()["problems"]

    assert {(problem["step"], problem["level"]) for problem in answer} == {("judge", "error"), ("gate", "warning")}
    assert all(
        problem.level == "error" for problem in checks.problems(graph.parse({"format": 1, "steps": steps}), alice)
    )


def test_an_old_version_is_looked_at_and_drawn_on_from(alice, bob, client):
    made = pipeline(alice, {"one": command("echo 1")})
    writing.save_version(made, user=alice, spec={"format": 1, "steps": {"one": command("echo 2")}})
    client.force_login(alice)
    page = client.get(f"/pipelines/{made.pk}/versions/1/")
    assert page.context["given"]["spec"]["steps"]["one"]["with"] == {"command": "echo 1"}
    assert page.context["given"]["readOnly"] is True
    assert not page.context["is_changed"]

    address = f"/pipelines/{made.pk}/versions/1/draft/"
    assert client.post(address, {"revision": "0"}).url == f"/pipelines/{made.pk}/edit/"
    draft = PipelineDraft.objects.get(pipeline=made, person=alice)
    assert draft.spec["steps"]["one"]["with"] == {"command": "echo 1"}
    assert [row.number for row in made.versions.all()] == [2, 1]
    assert not writing.is_changed(draft)  # a version holds it: nothing to ask about

    writing.keep_draft(made, alice, spec={"format": 1, "steps": {"own": command()}}, layout={}, revision=1)
    assert client.get(f"/pipelines/{made.pk}/versions/").context["is_changed"]
    assert "data-ask" in client.get(f"/pipelines/{made.pk}/versions/").content.decode()
    client.post(address, {"revision": "1"})  # of a draft that is no more
    assert list(PipelineDraft.objects.get(pipeline=made, person=alice).spec["steps"]) == ["own"]
    client.force_login(bob)
    assert client.post(address, {"revision": "0"}).status_code == 404
