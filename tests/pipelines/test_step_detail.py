"""The step of a run that somebody opens: what it made, its attempts, and the log of its job for who may read it."""

import pytest
from django.urls import reverse

from inference.pipelines import loop, runs
from inference.pipelines.kinds import KINDS
from tests.pipelines.made import again, begun, command, complete, end, step
from workers.core.states import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


def opened(client, user, run, key="one"):
    client.force_login(user)
    return client.get(reverse("pipelines:run", args=[run.pk]), {"step": key})


def test_opened_step_shows_figures_attempts_and_the_log_of_its_job(client, alice):
    run = begun(alice, {"one": command(), "two": command(after=["one"])})
    end(step(run, "one").job, Event.EXITED_BAD)
    loop.advance_run(run.pk)
    runs.retry(run, "one", by=alice)
    loop.advance_run(run.pk)
    complete(run, "one", figures={"AP50": 0.9, "red.AP50": 0.8})

    page = opened(client, alice, run)
    shown = page.context["opened"]
    assert shown["figures"] == [("AP50", "0.900"), ("red.AP50", "0.800")]
    assert [(attempt["number"], attempt["tone"]) for attempt in shown["attempts"]] == [(2, "ok"), (1, "failed")]
    assert shown["attempts"][1]["message"]
    html = page.content.decode()
    assert f'data-log="{step(run, "one").job_id}"' in html
    assert "data-log-brief" in html
    part = client.get(f"{page.request['PATH_INFO']}?step=one", headers={"HX-Request": "true", "HX-Target": "run-step"})
    assert b"<html" not in part.content
    assert b'id="h-step"' in part.content
    assert "opened" not in opened(client, alice, run, "nothing").context


def test_reader_of_a_public_pipeline_is_told_why_there_is_no_log(client, alice, bob):
    run = begun(alice, {"one": command()})
    end(step(run, "one").job, Event.EXITED_BAD)
    loop.advance_run(run.pk)
    run.pipeline.visibility = "public"
    run.pipeline.save()

    page = opened(client, bob, run)
    shown = page.context["opened"]
    assert (shown["job"], shown["console"], shown["log_withheld"]) == (None, "", True)
    assert [attempt["message"] for attempt in shown["attempts"]] == [""]
    html = page.content.decode()
    assert "data-log=" not in html
    assert "The output of its job is visible only to users with access to" in html


def test_earlier_result_is_named_and_can_be_done_again(client, alice, monkeypatch):
    monkeypatch.setattr(KINDS.get("command"), "acts", False)
    first = begun(alice, {"one": command()})
    complete(first, "one", figures={"AP50": 0.9})
    second = again(first.pipeline, alice)

    html = opened(client, alice, second).content.decode()
    assert f'Earlier result of <a href="{reverse("pipelines:run", args=[first.pk])}">' in html
    assert 'name="anew" value="1"' in html
