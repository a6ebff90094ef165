import json
from datetime import UTC, datetime, timedelta

import pytest

from accounts.services.notify import notify
from aiplatform.lib import signatures, wording
from aiplatform.lib.errors import Invalid, NotAllowed
from inference.pipelines import loop, runs, trigger_api, trigger_firings, trigger_settings
from inference.pipelines.models import Firing, PipelineRun, PipelineTrigger
from tests.factories import datasets
from tests.pipelines.made import command, complete, pipeline
from workers.core import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("machine")]


@pytest.fixture
def at(monkeypatch):
    """Set the platform's clock."""

    def set_to(moment: datetime) -> None:
        monkeypatch.setattr(clock, "now", lambda: moment)
        for module in (trigger_firings, trigger_settings, loop):
            monkeypatch.setattr(module, "now", lambda: moment)

    return set_to


def test_schedule_fires_once_for_each_time_and_makes_up_for_the_latest(alice, at):
    at(datetime(2026, 3, 1, 12, tzinfo=UTC))
    made = pipeline(alice, {"one": command()})
    trigger, _secret = trigger_settings.create(
        made, user=alice, kind="cron", schedule="0 3 * * 0", zone="Europe/Berlin"
    )
    times = trigger_settings.next_times(trigger)
    assert times[0] == datetime(2026, 3, 8, 2, tzinfo=UTC)
    assert times[3] == datetime(2026, 3, 29, 1, tzinfo=UTC)  # clocks went forward that night

    at(times[0] - timedelta(seconds=1))
    assert trigger_firings.fire_due() == 0
    at(times[0] + timedelta(seconds=20))
    assert (trigger_firings.fire_due(), trigger_firings.fire_due()) == (1, 0)
    run = PipelineRun.objects.get()
    assert run.trigger["by"] == "cron"

    at(times[1] + timedelta(minutes=1))
    loop.advance_run(run.pk)
    complete(run, "one")
    run = runs.start(user=alice, version=run.version)
    assert trigger_firings.fire_due() == 0  # one that was begun by hand goes on
    assert str(Firing.objects.first().message) == "An earlier run of this pipeline was active."
    loop.advance_run(run.pk)
    complete(run, "one")
    at(times[4] + timedelta(hours=1))  # nobody was there for three weeks
    assert (trigger_firings.fire_due(), trigger_firings.fire_due()) == (1, 0)
    assert Firing.objects.count() == 3


def test_new_version_begins_a_run_but_not_by_the_pipelines_own_work(alice):
    made = pipeline(alice, {"one": command()})
    cells = datasets.dataset(alice)
    datasets.version(cells)
    trigger, _secret = trigger_settings.create(made, user=alice, kind="dataset", dataset=cells)
    assert trigger_firings.fire_due() == 0

    fresh = datasets.version(cells)
    assert (trigger_firings.fire_due(), trigger_firings.fire_due()) == (1, 0)
    run = PipelineRun.objects.get()
    assert run.trigger["dataset_version"] == fresh.pk
    loop.advance_run(run.pk)
    complete(run, "one")

    own = datasets.version(cells)
    run.step_runs.update(outputs={"data": {"type": "dataset", "id": own.pk, "label": str(own)}})
    assert trigger_firings.fire_due() == 0
    trigger.refresh_from_db()
    assert trigger.message.code == "pipeline.own_work"


def test_drift_of_a_service_begins_a_run(alice, service):
    made = pipeline(alice, {"one": command()})
    trigger_settings.create(made, user=alice, kind="drift", service=service)
    notify(alice, "drift", title=wording.verbatim("x"), key=f"drift-{service.pk}-7-2026-W10")
    notify(alice, "drift", title=wording.verbatim("x"), key=f"drift-{service.pk}1-7-2026-W10")

    assert (trigger_firings.fire_due(), trigger_firings.fire_due()) == (1, 0)


def test_triggers_that_could_never_fire_are_refused(alice, bob, service):
    made = pipeline(alice, {"one": command()}, lr=1)
    with pytest.raises(Invalid) as refused:
        trigger_settings.create(
            made, user=alice, kind="cron", schedule="61 * * * *", zone="Mars/Base", parameters={"x": 1}
        )
    assert [error.blamed for error in refused.value.every] == ["schedule", "zone", "parameters"]
    with pytest.raises(NotAllowed):
        trigger_settings.create(made, user=alice, kind="alarm")
    with pytest.raises(Invalid):
        trigger_settings.create(made, user=bob, kind="drift", service=service)


def test_k06_webhook_begins_one_run_for_each_delivery_that_is_proven(client, alice, monkeypatch):
    made = pipeline(alice, {"one": command()})
    client.force_login(alice)
    body = {"pipeline": made.pk, "kind": "webhook"}
    created = client.post("/api/v1/pipeline-triggers/", body, content_type="application/json").json()
    client.logout()
    sent = json.dumps({"commit": "abc"}).encode()

    def deliver(secret=created["secret"], at=None, body=sent):
        signed = signatures.header(secret, sent, at or clock.now(), "d1")
        answer = client.post(created["url"], body, content_type="application/json", headers={signatures.HEADER: signed})
        return answer.status_code

    assert deliver("wrong") == 403
    assert deliver(at=clock.now() - timedelta(minutes=6)) == 403
    assert deliver(body=b"{}") == 403
    assert client.post(created["url"], sent, content_type="application/json").status_code == 403
    assert not PipelineRun.objects.exists()
    assert (deliver(), deliver()) == (202, 202)
    run = PipelineRun.objects.get()
    assert (run.owner, run.trigger["payload"]) == (alice, {"commit": "abc"})
    assert created["secret"] not in PipelineTrigger.objects.get().secret
    missing = "/api/v1/pipeline-hooks/987654/"
    for headers in ({}, {signatures.HEADER: signatures.header("wrong", sent, clock.now())}):
        answers = [
            client.post(url, sent, content_type="application/json", headers=headers)
            for url in (created["url"], missing)
        ]
        assert answers[0].status_code == answers[1].status_code == 403
        assert answers[0].json()["detail"] == answers[1].json()["detail"]
    other = trigger_settings.create(made, user=alice, kind="webhook")[1]
    assert deliver(other) == 403  # the secret of another trigger
    assert deliver(body=sent + b" " * trigger_settings.MAX_BODY_BYTES) == 400
    assert client.get(created["url"]).status_code == 405
    monkeypatch.setattr(trigger_settings, "MAX_PER_MINUTE", 0)
    assert (deliver("wrong"), deliver()) == (403, 429)  # who knows no secret is not counted there
    monkeypatch.setattr(trigger_api, "MAX_CALLS_PER_MINUTE", 0)
    assert deliver("wrong") == 429
