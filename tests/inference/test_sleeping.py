"""Services without a server while nobody asks."""

import asyncio
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils.timezone import now

from accounts.services import tokens
from aiplatform.lib.errors import Invalid
from inference.serving import endpoints, proxy
from inference.serving.models import Service
from inference.serving.scaling import sleep
from inference.tasks import sweep
from tests.inference import pictures, tiny
from tests.inference.asking import call, one_call
from tests.inference.running import set_state
from tests.inference.scaled import CALM, ending, fresh
from workers.core.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sleeper(scaled, places):
    endpoints.edit(service=scaled, description="", visibility="private", limits={"min_replicas": 0, "idle_minutes": 1})
    endpoints.remember_ready(scaled, 1)
    return fresh(scaled)


def test_service_falls_asleep_when_nobody_asked_for_its_time(sleeper, places, server_load):
    server_load["look"] = CALM
    assert not sleep.fall_asleep(sleeper)  # it has just started
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    Service.objects.filter(pk=sleeper.pk).update(asked_at=now() - timedelta(seconds=30))
    sweep()
    assert fresh(sleeper).state == "ready"
    Service.objects.filter(pk=sleeper.pk).update(asked_at=now() - timedelta(seconds=61))

    sweep()

    after = fresh(sleeper)
    assert (after.state, ending(after.job)) == ("asleep", True)


@pytest.mark.sockets("a model server of its own")
def test_request_wakes_a_service_and_is_answered(sleeper, places, server_load, alice, serve, tmp_path, monkeypatch):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleep.fall_asleep(fresh(sleeper))
    port = serve(tiny.classifier(tmp_path / "woken"), AIP_SERVICE_KEY="secret")
    app = proxy.new()
    headers = {"Authorization": f"Bearer {tokens.issue(user=alice, name='t')[1]}"}

    async def wakes():
        async def send_request():
            return await one_call(app, "POST", f"{sleeper.url}/predict", headers, pictures.plain(), False)

        calls = [asyncio.create_task(send_request()) for _number in range(5)]
        while (job := await asyncio.to_thread(lambda: fresh(sleeper).job)).pk == sleeper.job_id:
            await asyncio.sleep(0.02)  # pause: until the first call has started it
        await asyncio.to_thread(set_state, job, "running")
        places[job.pk] = ("127.0.0.1", port)
        responses = await asyncio.gather(*calls)
        await app.close()
        return responses

    answers = asyncio.run(asyncio.wait_for(wakes(), 60))

    assert [sent[0]["status"] for sent in answers] == [200] * 5
    assert Job.objects.filter(kind="service").count() == 2  # five calls started it once


def test_call_is_told_when_what_it_woke_takes_too_long(sleeper, places, server_load, alice, monkeypatch):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleep.fall_asleep(fresh(sleeper))
    monkeypatch.setattr(proxy, "TIMEOUT_S", 0.2)

    answer = call("POST", f"{sleeper.url}/predict", user=alice, body=pictures.plain())

    assert (answer.status, answer.json["code"]) == (503, "service_starting")
    assert fresh(sleeper).state == "queued"


def test_asleep_service_can_be_stopped_and_started(sleeper, places, server_load, alice, client):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleep.fall_asleep(fresh(sleeper))
    client.force_login(alice)
    assert "Scaled to zero" in client.get(reverse("inference:service-detail", args=[sleeper.pk])).content.decode()

    endpoints.stop(service=fresh(sleeper), by=alice)
    assert fresh(sleeper).state != "asleep"
    set_state(fresh(sleeper).job, "stopped")
    assert call("POST", f"{sleeper.url}/predict", user=alice, body=b"").status == 410
    endpoints.start(service=fresh(sleeper), by=alice)
    assert fresh(sleeper).state == "queued"


def test_asleep_service_that_is_to_have_a_server_always_is_started(sleeper, places, server_load, alice):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleep.fall_asleep(fresh(sleeper))

    endpoints.edit(service=fresh(sleeper), description="", visibility="private", limits={"min_replicas": 1})

    after = fresh(sleeper)
    assert (after.state, after.job_id == sleeper.job_id) == ("queued", False)


def test_look_at_its_health_wakes_nothing(sleeper, places, server_load, alice):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleep.fall_asleep(fresh(sleeper))

    answer = call("GET", f"{sleeper.url}/v2/health/ready", user=alice)

    assert (answer.status, answer.json["code"]) == (503, "service_asleep")
    assert fresh(sleeper).state == "asleep"


def test_service_that_cannot_be_woken_is_not_planned_at_each_call(sleeper, places, server_load, alice, monkeypatch):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleep.fall_asleep(fresh(sleeper))
    versions = []

    def refuse(scaled, version):
        versions.append(version)
        raise Invalid("You have no more cores.")

    monkeypatch.setattr(endpoints, "submit", refuse)

    answers = [call("POST", f"{sleeper.url}/predict", user=alice, body=b"") for _number in range(3)]

    assert {(answer.status, answer.json["detail"]) for answer in answers} == {(503, "You have no more cores.")}
    assert len(versions) == 1


def test_service_that_nobody_ever_asked_falls_asleep_too(sleeper, places, server_load):
    Service.objects.filter(pk=sleeper.pk).update(ready_attempt=0)
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))

    sweep()

    assert fresh(sleeper).state == "asleep"
