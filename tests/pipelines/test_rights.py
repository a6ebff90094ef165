"""Nobody's pipeline does more for somebody than that person said, and nobody sees more of a run than is theirs."""

import json

import pytest
from django.urls import reverse

from accounts.access import sharing
from accounts.models import UserGroup
from aiplatform.lib.errors import Invalid, NotAllowed
from inference.pipelines import loop, run_updates, runs, trigger_firings, trigger_settings, writing
from inference.pipelines.models import Pipeline, PipelineRun, StepApproval, StepRun
from tests.factories import datasets, people
from tests.pipelines.made import again, begun, command, complete, pipeline, states, step
from workers.core import clock
from workers.core.states import Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


@pytest.fixture
def fire():
    """Let a trigger answer something new; the run, or why there is none."""

    def fired(trigger):
        key = f"k{trigger.firings.count()}"
        run = trigger_firings.fire(trigger, trigger_firings.News(key, clock.now()))
        trigger.refresh_from_db()
        return run or str(trigger.message)

    return fired


def save(made, user, text):
    return writing.save_version(made, user=user, spec={"steps": {"one": command(text)}})


def test_c10_nobody_changes_what_runs_as_somebody_else(alice, bob, fire, client):
    made = pipeline(bob, {"one": command("first")})
    sharing.set_level(made, alice, sharing.MANAGE)
    trigger, _secret = trigger_settings.create(made, user=alice, kind="cron", schedule="0 3 * * 0", zone="UTC")
    save(made, bob, "steal")
    assert fire(trigger).version.number == 1
    assert "Your triggers run with your permissions, so they keep the" in str(alice.notifications.get().title)

    trigger_settings.switch(trigger, on=False, by=bob)
    client.force_login(bob)
    url = f"/api/v1/pipeline-triggers/{trigger.pk}/"
    for change in ({"is_on": True}, {"version": 2}):
        assert client.patch(url, change, content_type="application/json").status_code == 403
    client.force_login(alice)
    change = {"is_on": True, "version": 2}
    assert client.patch(url, change, content_type="application/json").json()["version"] == 2
    PipelineRun.objects.update(state="ok")
    assert fire(trigger).version.number == 2
    save(made, alice, "her own")
    PipelineRun.objects.update(state="ok")
    assert fire(trigger).version.number == 3

    sharing.set_level(made, alice, None)
    PipelineRun.objects.update(state="ok")
    assert fire(trigger) == "The owner of this run does not have this permission any more."
    assert alice.notifications.filter(kind="failed", title__code="pipeline.trigger_refused").count() == 1
    assert trigger_settings.Handed().transfer(alice, bob) == 1
    trigger.refresh_from_db()
    assert (trigger.owner, trigger.is_on, trigger.agreed) == (bob, False, 0)


def test_c10_pipelines_inside_are_those_of_people_whose_word_goes(alice, bob, fire):
    inner = writing.create(user=bob, name="prep", spec={"steps": {"one": command()}}, visibility="public")

    def refused(name, user=alice, **how):
        sub = {"sub": {"kind": "pipeline", "with": {"pipeline": name, **how}}}
        made = pipeline(user, sub, name=f"p{Pipeline.objects.count()}")
        try:
            runs.start(user=user, version=writing.newest_or_refused(made))
        except Invalid as exc:
            return exc.sentences
        return ""

    assert "Pipeline “prep” not found." in refused("prep")
    assert "Review it, and enter its number:" in refused(str(inner.pk))
    assert f"Write its number: {inner.pk}" in refused("bob/prep", version="1")  # he may give the name to another
    assert refused(str(inner.pk), version="v1") == ""
    outer = pipeline(bob, {"sub": {"kind": "pipeline", "with": {"pipeline": "prep"}}}, name="whole")
    sharing.set_level(outer, alice, sharing.MANAGE)
    assert states(again(outer, alice))["sub/one"] == "started"  # she began it, as he saved it
    PipelineRun.objects.update(state="ok")
    trigger, _secret = trigger_settings.create(outer, user=alice, kind="webhook")
    assert "Pipeline “prep” not found." in fire(trigger)


def test_who_steers_a_run_and_who_repeats_it(alice, bob, client):
    made = writing.create(user=alice, name="open", spec={"steps": {"one": command()}}, visibility="public")
    run = again(made, bob)
    client.force_login(alice)
    assert client.post(f"/api/v1/pipeline-runs/{run.pk}/cancel/").status_code == 202  # it is her pipeline
    with pytest.raises(NotAllowed):
        runs.retry(run, "one", by=alice)


def test_group_of_a_pipelines_owner_sees_its_runs_and_no_other_group(alice, bob):
    made = writing.create(user=alice, name="team", spec={"steps": {"one": command()}}, visibility="group")
    carol, dan = people.user("carol"), people.user("dan")
    for name, members in (("team", [alice, bob, carol]), ("others", [bob, dan])):
        UserGroup.objects.create(name=name).users.set(members)
    run = again(made, bob)

    assert PipelineRun.objects.visible_to(carol).filter(pk=run.pk).exists()
    assert not PipelineRun.objects.visible_to(dan).exists()


def test_run_of_a_public_pipeline_shows_strangers_no_private_names(alice, bob, client):
    cells = datasets.version(datasets.dataset(bob, "patients"))
    steps = {"data": {"kind": "dataset", "with": {"dataset": "${which}"}}, "one": command(), "odd": command("no")}
    spec = {"parameters": {"which": {"default": ""}}, "steps": steps}
    made = writing.create(user=alice, name="open", spec=spec, visibility="public")
    run = again(made, bob, parameters={"which": "patients"})
    complete(run, "one", figures={"AP50": 0.5})
    complete(run, "odd", event=Event.EXITED_BAD)
    StepRun.objects.filter(run=run, step="odd").update(message={"code": "pipeline.broke", "facts": {"why": "patients"}})
    carol = people.user("carol")

    def shown(user):
        client.force_login(user)
        pages = [reverse("pipelines:run", args=[run.pk]), f"/api/v1/pipeline-runs/{run.pk}/"]
        return "".join(client.get(page).content.decode() for page in [*pages, "/api/v1/pipeline-runs/"])

    assert "patients" not in (text := shown(carol))
    assert "0.5" in text
    assert str(cells) in shown(bob)
    assert str(cells) in shown(alice)  # whoever owns the pipeline answers for what it does
    client.force_login(carol)
    trigger_settings.create(made, user=alice, kind="webhook")
    assert client.get("/api/v1/pipeline-triggers/").json()["results"] == []


def test_j08_pasted_json_and_parameters_of_runs_break_nothing(alice, client):
    client.force_login(alice)
    made = pipeline(alice, {"one": command("echo ${lr}")}, lr=0.1)
    for odd in ("NaN", "1e999", '"\\u0000"', "9" * 30, "[" * 9000):
        answer = client.post(reverse("pipelines:run-new", args=[made.pk]), {"param_lr": odd, "limit": 1})
        assert answer.status_code in ((302,) if odd.startswith("[[") else (422,))  # the last one is a text
    deep: object = "x"
    for _level in range(50):
        deep = [deep]
    steps = [
        {"constructor": {"kind": "command", "with": {"__proto__": deep}}},
        {"a": {"kind": "command", "with": {"command": "${" * 200}}},
        {"a": {"kind": "items", "with": {"values": ["x" * 2_000_000]}}},
        {"a": {"kind": "<script>"}},
        {"__proto__": {"kind": "command"}},
        {"a": {"kind": "command", "after": ["a"]}},
        {f"s{n}": {"kind": "command"} for n in range(2001)},
    ]
    for entry in steps:
        body = json.dumps({"spec": {"steps": entry}})
        answer = client.post("/api/v1/pipelines/check/", body, content_type="application/json")
        assert answer.status_code == 400 or answer.json()["problems"], str(entry)[:80]
    page = '"</script><script>alert(1)</script>'
    marked = pipeline(alice, {"one": command(page, note=page)}, name="marked")
    for name in ("detail", "edit", "text", "versions"):
        assert "<script>alert" not in client.get(reverse(f"pipelines:{name}", args=[marked.pk])).content.decode()


def test_step_ends_whatever_happens_to_its_owner_its_job_or_its_stop(alice, monkeypatch):
    run = begun(alice, {"one": command(), "ask": {"kind": "approve"}})
    step(run, "one").job.delete()
    assert loop.advance_due() == 1
    assert str(step(run, "one").message) == "The job was deleted."
    type(alice).objects.filter(pk=alice.pk).update(is_active=False)
    PipelineRun.objects.update(is_due=True)
    loop.advance_due()
    assert states(run) == {"one": "failed", "ask": "failed"}

    type(alice).objects.filter(pk=alice.pk).update(is_active=True)
    stuck = begun(alice, {"people": {"kind": "approve"}, "one": command()})
    StepRun.objects.filter(run=stuck, step="one").update(job=None, look_at="2100-01-01T00:00Z")
    monkeypatch.setattr("inference.pipelines.kinds.stop_job", lambda _job: 1 / 0)
    runs.cancel(stuck)
    loop.advance_run(stuck.pk)
    stuck.refresh_from_db()
    assert stuck.state == "cancelled"


def test_list_that_would_make_too_many_rows_fails_its_step(alice, monkeypatch):
    monkeypatch.setattr(run_updates, "MAX_ROWS", 12)
    monkeypatch.setattr(run_updates, "MAX_WRITTEN", 3)
    listed = {"list": {"kind": "items", "with": {"values": list(range(8))}}}
    run = begun(alice, {**listed, "one": command(each="list.items"), "two": command(each="list.items")}, limit=8)

    assert sorted(states(run).values()) == ["failed", "ok", "started"]
    assert StepRun.objects.filter(run=run, item__gte=0, state="started").count() == 8


def test_cached_figures_are_called_after_the_step_that_gives_them(alice, monkeypatch):
    from inference.pipelines.kinds import KINDS

    monkeypatch.setattr(KINDS.get("command"), "acts", False)
    complete(begun(alice, {"early": command()}), "early", figures={"AP50": 0.5})
    gate = {"kind": "gate", "with": {"rule": "late.AP50 >= 0.5"}, "from": {"figures": "late.figures"}}

    run = begun(alice, {"late": command(), "gate": gate})
    assert (states(run), step(run, "gate").answer) == ({"late": "cached", "gate": "ok"}, "passed")


def test_whoever_is_asked_sees_the_run_whatever_their_roles_show(client, alice, anna):
    steps = {"ask": {"kind": "approve", "with": {"people": "anna", "question": "Are these boxes right?"}}}
    run, other = begun(alice, steps), begun(alice, {"one": command()})
    client.force_login(anna)

    assert "Are these boxes right?" in client.get(f"/pipelines/runs/{run.pk}/").content.decode()
    assert client.get(f"/pipelines/runs/{other.pk}/").status_code == 404
    client.post(f"/pipelines/approvals/{StepApproval.objects.get().pk}/", {"answer": "passed"})
    loop.advance_run(run.pk)
    run.refresh_from_db()
    assert run.state == "ok"
