import json
from datetime import timedelta

import pytest
from django.urls import reverse

from inference.pipelines import graph, loop, metric_names, run_presentation, sketch, templates
from inference.pipelines.models import Pipeline, PipelineRun, StepApproval
from tests.pipelines.made import again, begun, command, complete, pipeline, states
from workers.core.clock import now

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]

STEPS = {
    "train": command("echo ${lr}"),
    "ask": {"kind": "approve", "with": {"question": "Ship it?"}, "after": ["train"]},
    "ship": command(when="ask.passed"),
}


@pytest.fixture
def page(client, alice):
    client.force_login(alice)
    return client


def test_pages_lead_from_nothing_to_a_run_that_asks(page, alice):
    assert b"No pipelines yet" in page.get(reverse("pipelines:list")).content
    answer = page.post(reverse("pipelines:new"), {"name": "cells", "visibility": "private", "template": ""})
    made = Pipeline.objects.get()
    assert answer.headers["Location"] == reverse("pipelines:edit", args=[made.pk])

    spec = {"parameters": {"lr": {"default": 0.1}}, "steps": STEPS}
    saved = page.post(f"/api/v1/pipelines/{made.pk}/versions/", {"spec": spec}, content_type="application/json")
    assert saved.status_code == 201
    assert b"Version 1" in page.get(reverse("pipelines:detail", args=[made.pk])).content
    form = page.get(reverse("pipelines:run-new", args=[made.pk])).content.decode()
    assert 'name="param_lr"' in form

    fields = {"param_lr": "0.01", "limit": "16", "use_cache": "on"}
    answer = page.post(reverse("pipelines:run-new", args=[made.pk]), fields)
    run = PipelineRun.objects.get()
    assert answer.headers["Location"] == reverse("pipelines:run", args=[run.pk])
    assert run.parameters == {"lr": 0.01}

    loop.advance_run(run.pk)
    complete(run, "train", figures={"AP50": 0.9})
    shown = page.get(reverse("pipelines:run", args=[run.pk])).content.decode()
    assert "Ship it?" in shown
    assert "AP50 0.9" in shown
    page.post(
        reverse("pipelines:approval", args=[StepApproval.objects.get().pk]), {"answer": "passed", "comment": "ok"}
    )
    loop.advance_run(run.pk)
    assert states(run)["ship"] == "started"
    assert "requests your approval" not in page.get(reverse("pipelines:list")).content.decode()


def test_template_names_the_pipeline_unless_a_name_is_given(page, alice):
    shown = page.get(reverse("pipelines:new"))
    assert [card["name"] for card in shown.context["cards"]] == [template.name for template in templates.TEMPLATES]
    for _number in range(2):
        page.post(reverse("pipelines:new"), {"template": "train_and_judge"})
    page.post(reverse("pipelines:new"), {"template": "every_sunday", "name": "mine"})
    page.post(reverse("pipelines:new"), {"template": ""})

    made = list(Pipeline.objects.order_by("pk"))
    assert [row.name for row in made] == ["Train evaluate decide", "Train evaluate decide 2", "mine", "New pipeline"]
    assert made[2].description.startswith("Trains after 200")
    assert [row.versions.count() for row in made] == [1, 1, 1, 0]


def test_sketch_places_steps_by_their_longest_way():
    drawn = sketch.of_spec(
        {"format": 1, "steps": {
            "a": command(), "b": command(after=["a"]), "c": command(after=["a", "b"]), "d": command(after=["a"]),
        }}
    )  # fmt: skip
    columns = sorted({node.x for node in drawn.nodes})
    assert (len(columns), len(drawn.nodes)) == (3, 4)
    assert len(drawn.links) == 3  # a to c is implied by the way over b
    assert (drawn.width, drawn.height) == (3 * sketch.COLUMN_PX, 2 * sketch.ROW_PX)


def test_metrics_of_steps_have_the_names_of_the_catalogue():
    values = {
        "p": None, "steps": 1240.0, "threshold": 0.5, "val/ap50": 0.5, "evaluate.ap50": 0.91234, "ap50": 0.91234,
        "map": 0.5,
    }  # fmt: skip
    assert metric_names.rows(values) == [
        ("mAP", "0.500"), ("AP50", "0.912"), ("AP50 on validation", "0.500"), ("Optimizer steps completed", "1,240"),
        ("Confidence threshold", "0.500"), ("p", "–"),
    ]  # fmt: skip


def test_run_page_offers_what_can_be_done_and_does_it(page, alice):
    run = begun(alice, {"one": command(), "two": command(after=["one"])})
    shown = page.get(reverse("pipelines:run", args=[run.pk])).content.decode()
    assert ">Skip<" in shown
    page.post(reverse("pipelines:run-skip", args=[run.pk]), {"step": "two"})
    complete(run, "one")
    assert states(run) == {"one": "ok", "two": "skipped"}

    shown = page.get(reverse("pipelines:run", args=[run.pk])).content.decode()
    assert "Retry from here" in shown
    page.post(reverse("pipelines:run-retry", args=[run.pk]), {"step": "one"})
    loop.advance_run(run.pk)
    assert states(run) == {"one": "started", "two": "waiting"}
    page.post(reverse("pipelines:run-cancel", args=[run.pk]))
    run.refresh_from_db()
    assert run.cancel


def test_draft_is_kept_for_who_knows_its_revision(page, alice):
    made = pipeline(alice, {"one": command()})
    url = f"/api/v1/pipelines/{made.pk}/draft/"
    begun_from = page.get(url)
    assert (begun_from.json()["revision"], begun_from.headers["ETag"]) == (0, '"0"')

    body = {"spec": {"steps": {"two": command()}}, "layout": {"two": [5, 6.4], "gone": [1, 2]}}

    def put_draft(revision):
        return page.put(url, body, content_type="application/json", headers={"If-Match": f'"{revision}"'})

    assert put_draft(0).json() | {"spec": None} == {
        "revision": 1, "spec": None, "layout": {"two": [5, 6]}, "base": 1,
    }  # fmt: skip
    assert put_draft(0).status_code == 412
    assert put_draft(1).json()["revision"] == 2
    assert page.put(url, body, content_type="application/json").status_code == 400
    saved = page.post(f"/api/v1/pipelines/{made.pk}/versions/", {"note": "second"}, content_type="application/json")
    assert saved.json()["number"] == 2
    again = page.post(
        f"/api/v1/pipelines/{made.pk}/versions/", {"spec": {"steps": {"one": command()}}},
        content_type="application/json",
    )  # fmt: skip
    assert again.json()["number"] == 3  # the first one is what counts again


def test_api_checks_runs_and_steers(page, alice):
    wrong = {"steps": {"gate": {"kind": "gate", "with": {"rule": "AP50 >"}}}}
    problems = page.post("/api/v1/pipelines/check/", {"spec": wrong}, content_type="application/json").json()[
        "problems"
    ]
    assert {(entry["step"], entry["field"]) for entry in problems} == {("gate", "figures"), ("gate", "rule")}

    made = pipeline(alice, {"one": command()}, lr=0.1)
    url = f"/api/v1/pipelines/{made.pk}/runs/"
    refused = page.post(url, {"parameters": {"epochs": 3}}, content_type="application/json")
    assert (refused.status_code, "epochs" in refused.content.decode()) == (400, True)
    run = page.post(url, {"parameters": {"lr": 0.2}}, content_type="application/json").json()
    assert (run["number"], run["steps"]["one"]["state"]) == (1, "waiting")
    loop.advance_run(run["id"])
    shown = page.get(f"/api/v1/pipeline-runs/{run['id']}/").json()
    assert (shown["steps"]["one"]["state"], shown["revision"]) == ("started", 1)
    assert page.post(f"/api/v1/pipeline-runs/{run['id']}/retry/", {"step": "none"}).status_code == 400
    assert page.post(f"/api/v1/pipeline-runs/{run['id']}/cancel/").status_code == 202
    kinds = page.get("/api/v1/pipelines/catalogue/").json()["kinds"]
    assert "train" in {entry["name"] for entry in kinds}
    json.dumps(kinds)


def test_triggers_are_set_up_switched_and_deleted_on_pages(page, alice):
    made = pipeline(alice, {"one": command()})
    url = reverse("pipelines:trigger-new", args=[made.pk])
    assert 'name="schedule"' in page.get(url).content.decode()
    refused = page.post(url, {"kind": "cron", "schedule": "every day", "zone": "UTC"})
    assert refused.status_code == 422
    page.post(url, {"kind": "cron", "schedule": "30 2 * * 0", "zone": "Europe/Berlin", "missed": "latest"})
    trigger = made.triggers.get()
    shown = page.get(reverse("pipelines:detail", args=[made.pk])).content.decode()
    assert "30 2 * * 0 · Europe/Berlin" in shown

    page.post(reverse("pipelines:trigger-switch", args=[trigger.pk]), {})
    trigger.refresh_from_db()
    assert not trigger.is_on
    page.post(reverse("pipelines:trigger-delete", args=[trigger.pk]))
    assert not made.triggers.exists()

    created = page.post(url, {"kind": "webhook"})
    assert "openssl dgst" in created.content.decode()
    assert created.headers["Cache-Control"] == "no-store"


def test_pipeline_goes_out_and_in_as_text_and_says_what_differs(page, alice):
    made = pipeline(alice, {"one": command("a")})
    url = reverse("pipelines:text", args=[made.pk])
    assert "kind: command" in page.get(url).content.decode()
    assert "Pipeline(" in page.get(url, {"as": "python"}).content.decode()
    written = page.get(f"/api/v1/pipelines/{made.pk}/text/").json()["text"]
    saved = page.post(
        reverse("pipelines:put-text", args=[made.pk]), {"text": written.replace("command: a", "command: b")}
    )
    assert saved.headers["Location"] == reverse("pipelines:detail", args=[made.pk])
    assert made.versions.count() == 2

    changes = page.get(f"/api/v1/pipelines/{made.pk}/diff/", {"a": 1, "b": 2}).json()
    assert [change["step"] for change in changes] == ["one"]
    assert changes[0]["sentence"] in page.get(reverse("pipelines:versions", args=[made.pk])).content.decode()
    rejected = page.post(reverse("pipelines:put-text", args=[made.pk]), {"text": "steps: &x {a: *x}"})
    assert (rejected.status_code, "steps: &amp;x" in rejected.content.decode()) == (422, True)
    odd = {"text": written.replace("command: a", "comand: a")}
    assert "has no parameter “comand”" in page.post(reverse("pipelines:put-text", args=[made.pk]), odd).content.decode()
    assert made.versions.count() == 2
    page.post(reverse("pipelines:put-text", args=[made.pk]), odd | {"anyway": "1"})
    assert made.versions.count() == 3


def test_run_says_how_long_it_still_takes(page, alice):
    made = pipeline(alice, {"one": command(), "two": command(after=["one"]), "beside": command()})
    first = again(made, alice)
    complete(first, "one", "beside")
    complete(first, "two")
    ended = now()
    for name, seconds in (("one", 100), ("two", 30), ("beside", 60)):
        first.step_runs.filter(step=name).update(started_at=ended - timedelta(seconds=seconds), ended_at=ended)

    second = again(made, alice)
    steps = run_presentation.steps_of(second, alice)
    assert run_presentation.eta_s(second, graph.parse(second.spec), steps) == pytest.approx(130, abs=5)
    assert "left, without waiting for users" in page.get(reverse("pipelines:run", args=[second.pk])).content.decode()
