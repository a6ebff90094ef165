"""Services with as many servers as their callers need, and none while nobody asks."""

import asyncio
from datetime import timedelta

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from aiplatform.lib.errors import Invalid
from inference import proxy
from inference.keys.asking import person
from inference.models import Service
from inference.scaling import rule, scaling, sleeping, telling
from inference.scaling.tables import ServiceReplica
from inference.services import serving, swapping
from inference.tasks import scale, sweep
from inference.traffic import routing
from tests.factories import models as factory
from tests.inference import pictures, tiny
from tests.inference.asking import call, one_call
from tests.inference.running import bring
from tests.running import free_port
from workers.models import Job
from workers.proxy import endpoints

pytestmark = pytest.mark.django_db(transaction=True)
BUSY = rule.Look(queue_s=1.0, busy=1.0, refused=0)
CALM = rule.Look(queue_s=0.001, busy=0.1, refused=0)


@pytest.fixture(autouse=True)
def _nothing_remembered():
    cache.clear()
    routing._loads.clear()


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path, name="tiny")


@pytest.fixture
def service(alice, version):
    made = serving.create(user=alice, name="demo", model_version=version, limits={"max_replicas": 3})
    bring(made.job, "running")
    made.refresh_from_db()
    return made


@pytest.fixture
def places(monkeypatch, service):
    """Where the servers of jobs are, by the job's number; all of them answer."""
    found: dict[int, tuple[str, int]] = {service.job_id: ("127.0.0.1", 1)}
    monkeypatch.setattr(endpoints, "endpoint", lambda job: found.get(job.pk))
    monkeypatch.setattr(serving, "answers", lambda place, key: True)
    monkeypatch.setattr(serving, "key_for", lambda job, attempt: "secret")
    return found


@pytest.fixture
def told(monkeypatch):
    """What servers tell at the next looks."""
    state = {"look": BUSY}
    monkeypatch.setattr(telling, "look", lambda jobs: state["look"])
    return state


def fresh(service):
    return Service.objects.select_related("job", "owner", "model_version").get(pk=service.pk)


def look(service):
    found = swapping.refresh(fresh(service))
    scaling.look(found)
    return fresh(service)


def up(row, places, port):
    bring(row.job, "running")
    places[row.job_id] = ("127.0.0.1", port)


def ending(job):
    job.refresh_from_db()
    return job.is_final or job.desired == "stop"


@pytest.mark.parametrize(
    ("seen", "given", "wanted"),
    [
        (BUSY, {"servers": 1}, 2),
        (BUSY, {"servers": 1, "coming": 1}, 2),  # what was started comes first
        (BUSY, {"servers": 3}, 3),
        (rule.Look(0.1, 0.2, 0), {"servers": 1}, 1),  # as long as may be
        (rule.Look(0.0, 0.1, 1), {"servers": 1}, 2),  # somebody was refused
        (rule.Look(None, 0.0, 0), {"servers": 3, "calm_s": 301}, 2),
        (CALM, {"servers": 3, "calm_s": 299}, 3),
        (CALM, {"servers": 1, "calm_s": 999}, 1),
        (CALM, {"servers": 2, "calm_s": 999, "least": 2}, 2),
        (rule.Look(0.001, 0.6, 0), {"servers": 2, "calm_s": 999}, 2),  # one alone would be busy all the time
        (CALM, {"servers": 1, "least": 2}, 2),
        (CALM, {"servers": 5}, 3),
        (CALM, {"servers": 0, "coming": 1}, 1),
    ],
)
def test_rule_grows_where_callers_wait_and_shrinks_after_a_time_without_need(seen, given, wanted):
    asked = {"coming": 0, "least": 1, "most": 3, "target_s": 0.1, "calm_s": 0.0, **given}

    assert rule.wanted(seen, **asked) == wanted


def test_looks_are_differences_and_leave_out_servers_that_began_anew():
    buckets = len(rule.SECONDS) + 1
    before = rule.Counts(100.0, [10] + [0] * (buckets - 1), 50.0, 1)
    after = rule.Counts(110.0, [10] + [0] * (buckets - 2) + [5], 55.0, 3)
    anew = rule.Counts(110.0, [1] + [0] * (buckets - 1), 0.1, 0)

    assert rule.between([(before, after)]) == rule.Look(20.0, 0.5, 2)
    assert rule.between([(before, anew)]) is None
    assert rule.between([(before, after), (before, anew)]) == rule.between([(before, after)])


def test_service_grows_to_what_it_may_have_and_shrinks_again(service, places, told, monkeypatch):
    for number in (2, 3, 4, 5):
        look(service)
        for row in service.replicas.all():
            up(row, places, number)
    rows = list(service.replicas.all())
    assert len(rows) == 2  # three with the first
    sweep()
    assert len(routing.servers(fresh(service))) == 3

    told["look"] = CALM
    monkeypatch.setattr(rule, "CALM_S", 0.0)
    look(service)
    (left,) = service.replicas.exclude(leaving_at=None)
    assert left == rows[1]
    assert len(routing.servers(fresh(service))) == 2
    assert not ending(left.job)  # it ends what it is at
    ServiceReplica.objects.filter(pk=left.pk).update(leaving_at=now() - 2 * scaling.DRAINING)
    look(service)
    assert ending(left.job)


def test_two_looks_at_once_start_one_server(service, places, told):
    one = swapping.refresh(fresh(service))

    scaling._grow(one, 1)
    scaling._grow(one, 1)

    assert service.replicas.count() == 1


def test_refused_growth_is_told_and_not_tried_again_at_once(service, places, told, monkeypatch, client, alice):
    asked = []

    def refuse(service, version):
        asked.append(version)
        raise Invalid("You have no more cores.")

    monkeypatch.setattr(serving, "submit", refuse)

    look(service)
    look(service)

    assert len(asked) == 1
    client.force_login(alice)
    page = client.get(reverse("inference:service-detail", args=[service.pk])).content.decode()
    assert "You have no more cores." in page


def test_server_that_failed_is_forgotten_and_no_other_is_started_for_a_while(service, places, told):
    look(service)
    bring(service.replicas.get().job, "failed")

    look(service)

    assert service.replicas.count() == 0
    cache.clear()
    look(service)
    assert service.replicas.count() == 1


def test_another_server_becomes_the_first_where_that_failed(service, places, told):
    look(service)
    row = service.replicas.get()
    up(row, places, 2)
    look(service)
    bring(service.job, "failed")

    after = look(service)

    assert (after.job_id, after.state) == (row.job_id, "ready")


def test_stopping_a_service_stops_all_its_servers(service, places, told, alice):
    look(service)
    row = service.replicas.get()
    up(row, places, 2)

    serving.stop(service=fresh(service), by=alice)

    assert ending(row.job)
    assert service.replicas.count() == 0


def test_change_of_the_model_waits_for_as_many_servers(service, places, told, alice, tmp_path):
    newer = factory.model_version(alice, tmp_path, name="newer")
    look(service)
    old = service.replicas.get()
    up(old, places, 2)
    told["look"] = rule.Look(0.1, 0.9, 0)
    look(service)

    swapping.change_model(service=fresh(service), version=newer, by=alice)
    held = fresh(service)
    bring(held.next_job, "running")
    places[held.next_job_id] = ("127.0.0.1", 3)
    assert look(service).model_version != newer  # its second server is on its way
    (second,) = service.replicas.filter(version=newer)
    up(second, places, 4)
    look(service)

    assert look(service).model_version == newer
    assert {one.port for one in routing.servers(fresh(service))} == {3, 4}
    old.refresh_from_db()
    assert old.leaving_at is not None


def test_given_up_change_ends_the_servers_started_for_it(service, places, told, alice, tmp_path):
    newer = factory.model_version(alice, tmp_path, name="newer")
    look(service)
    up(service.replicas.get(), places, 2)
    told["look"] = rule.Look(0.1, 0.9, 0)
    look(service)
    swapping.change_model(service=fresh(service), version=newer, by=alice)
    started = service.replicas.get(version=newer)

    swapping.change_model(service=fresh(service), version=service.model_version, by=alice)
    look(service)

    started.refresh_from_db()
    assert started.leaving_at is not None


@pytest.mark.sockets("two model servers of its own")
def test_requests_go_to_the_server_with_the_fewest_and_past_one_that_is_away(
    service, places, told, alice, serve, tmp_path
):
    ports = [
        serve(tiny.classifier(tmp_path / str(number)), AIP_SERVICE_KEY="secret", AIP_MODEL_VERSION=str(number))
        for number in (1, 2)
    ]
    places[service.job_id] = ("127.0.0.1", ports[0])
    look(service)
    row = service.replicas.get()
    up(row, places, ports[1])
    look(service)
    asked = {
        call("POST", f"{service.url}/predict", user=alice, body=pictures.plain()).json["version"] for _n in range(30)
    }
    assert asked == {"1", "2"}

    places[row.job_id] = ("127.0.0.1", free_port())
    answers = [call("POST", f"{service.url}/predict", user=alice, body=pictures.plain()) for _number in range(10)]
    assert {answer.status for answer in answers} == {200}


def test_least_busy_server_is_chosen(service, places, told, alice):
    look(service)
    up(service.replicas.get(), places, 2)
    look(service)
    split = routing.split(fresh(service), person(service, alice), routing.servers(fresh(service)))
    first = split({"headers": []}, "predict")
    with first.load, first.load:
        others = {split({"headers": []}, "predict").port for _number in range(20)}

    assert others == {3 - first.port}


@pytest.fixture
def sleeper(service, places):
    serving.edit(service=service, description="", visibility="private", limits={"min_replicas": 0, "idle_minutes": 1})
    serving.remember_ready(service, 1)
    return fresh(service)


def test_service_falls_asleep_when_nobody_asked_for_its_time(sleeper, places, told):
    told["look"] = CALM
    assert not sleeping.fall_asleep(sleeper)  # it has just started
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    Service.objects.filter(pk=sleeper.pk).update(asked_at=now() - timedelta(seconds=30))
    sweep()
    assert fresh(sleeper).state == "ready"
    Service.objects.filter(pk=sleeper.pk).update(asked_at=now() - timedelta(seconds=61))

    sweep()

    after = fresh(sleeper)
    assert (after.state, ending(after.job)) == ("asleep", True)


@pytest.mark.sockets("a model server of its own")
def test_request_wakes_a_service_and_is_answered(sleeper, places, told, alice, serve, tmp_path, monkeypatch):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleeping.fall_asleep(fresh(sleeper))
    port = serve(tiny.classifier(tmp_path / "woken"), AIP_SERVICE_KEY="secret")
    app = proxy.new()
    headers = {"Authorization": f"Bearer {_token(alice)}"}

    async def wakes():
        async def ask():
            return await one_call(app, "POST", f"{sleeper.url}/predict", headers, pictures.plain(), False)

        calls = [asyncio.create_task(ask()) for _number in range(5)]
        while (job := await asyncio.to_thread(lambda: fresh(sleeper).job)).pk == sleeper.job_id:
            await asyncio.sleep(0.02)  # pause: until the first call has started it
        await asyncio.to_thread(bring, job, "running")
        places[job.pk] = ("127.0.0.1", port)
        told = await asyncio.gather(*calls)
        await app.close()
        return told

    answers = asyncio.run(asyncio.wait_for(wakes(), 60))

    assert [sent[0]["status"] for sent in answers] == [200] * 5
    assert Job.objects.filter(kind="service").count() == 2  # five calls started it once


def test_call_is_told_when_what_it_woke_takes_too_long(sleeper, places, told, alice, monkeypatch):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleeping.fall_asleep(fresh(sleeper))
    monkeypatch.setattr(proxy, "PATIENCE_S", 0.2)

    answer = call("POST", f"{sleeper.url}/predict", user=alice, body=pictures.plain())

    assert (answer.status, answer.json["code"]) == (503, "service_starting")
    assert fresh(sleeper).state == "queued"


def test_asleep_service_can_be_stopped_and_started(sleeper, places, told, alice, client):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleeping.fall_asleep(fresh(sleeper))
    client.force_login(alice)
    assert "Asleep" in client.get(reverse("inference:service-detail", args=[sleeper.pk])).content.decode()

    serving.stop(service=fresh(sleeper), by=alice)
    assert fresh(sleeper).state != "asleep"
    bring(fresh(sleeper).job, "stopped")
    assert call("POST", f"{sleeper.url}/predict", user=alice, body=b"").status == 410
    serving.start(service=fresh(sleeper), by=alice)
    assert fresh(sleeper).state == "queued"


def test_scale_of_a_service_that_was_deleted_does_nothing(service):
    number = service.pk
    service.delete()

    scale(number)


def test_bounds_of_servers_must_fit_each_other(service, alice):
    with pytest.raises(Invalid) as said:
        serving.edit(service=service, description="", visibility="private", limits={"min_replicas": 4})
    assert said.value.blamed == "max_replicas"
    api = APIClient()
    api.force_authenticate(alice)
    route = f"/api/v1/services/{service.pk}/"
    assert api.patch(route, {"limits": {"max_replicas": 0}}, format="json").status_code == 400
    assert api.patch(route, {"limits": {"most": 2}}, format="json").status_code == 400
    told = api.patch(route, {"limits": {"min_replicas": 2}}, format="json").json()
    assert (told["limits"]["min_replicas"], told["limits"]["max_replicas"], told["servers"]) == (2, 3, 0)


def test_servers_tell_how_long_requests_waited(serve, tmp_path, service, monkeypatch):
    text = (
        'aip_requests_total{route="/predict",code="429"} 3\n'
        'aip_queue_seconds_bucket{le="0.001"} 4\naip_queue_seconds_bucket{le="+Inf"} 6\naip_inference_seconds_sum 1.5\n'
    )

    assert telling.read(text, 7.0) == rule.Counts(7.0, [4, 2], 1.5, 3)


def _token(user):
    from accounts.services import tokens

    return tokens.issue(user=user, name="t")[1]


def test_service_told_to_stop_does_not_grow_while_it_stops(service, places, told, alice):
    serving.edit(service=service, description="", visibility="private", limits={"min_replicas": 2})
    serving.stop(service=fresh(service), by=alice)

    look(service)
    scaling._grow(fresh(service), 1)

    assert service.replicas.count() == 0


def test_first_server_stopped_by_its_job_takes_the_others_along(service, places, told, alice):
    look(service)
    row = service.replicas.get()
    up(row, places, 2)
    told["look"] = rule.Look(0.1, 0.9, 0)
    look(service)
    bring(service.job, "stopped")

    answer = call("POST", f"{service.url}/predict", user=alice, body=b"")
    look(service)

    assert answer.status == 410
    assert ending(row.job)
    assert service.replicas.count() == 0


def test_stop_ends_what_is_left_beside_a_server_that_is_over(service, places, told, alice):
    look(service)
    row = service.replicas.get()
    bring(service.job, "stopped")

    serving.stop(service=fresh(service), by=alice)

    assert ending(row.job)
    with pytest.raises(serving.NotUp):
        serving.stop(service=fresh(service), by=alice)


def test_stop_that_meets_a_move_is_asked_again(service, monkeypatch):
    from workers.jobs.transitions import StaleReport

    asked, real = [], serving.actions.stop

    def stop(job, **more):
        asked.append(job.pk)
        if len(asked) == 1:
            raise StaleReport("moved")
        return real(job, **more)

    monkeypatch.setattr(serving.actions, "stop", stop)

    serving.end(service.job, None)

    assert len(asked) == 2
    assert ending(service.job)


def test_server_that_no_service_knows_is_ended_after_a_while(service, places, told):
    look(service)
    row = service.replicas.get()
    job = row.job
    up(row, places, 2)
    ServiceReplica.objects.all().delete()
    scaling.end_orphans()
    assert not ending(job)
    Job.objects.update(created_at=now() - timedelta(hours=1))

    scaling.end_orphans()

    assert ending(job)
    assert not ending(service.job)


def test_server_whose_version_was_deleted_leaves(service, places, told):
    look(service)
    row = service.replicas.get()
    up(row, places, 2)
    ServiceReplica.objects.filter(pk=row.pk).update(version=None)

    look(service)

    row.refresh_from_db()
    assert row.leaving_at is not None


def test_failed_change_of_the_model_lets_its_further_servers_go(service, places, told, alice, tmp_path):
    newer = factory.model_version(alice, tmp_path, name="newer")
    look(service)
    up(service.replicas.get(), places, 2)
    told["look"] = rule.Look(0.1, 0.9, 0)
    look(service)
    swapping.change_model(service=fresh(service), version=newer, by=alice)
    bring(fresh(service).next_job, "failed")

    look(service)

    assert service.replicas.get(version=newer).leaving_at is not None


def test_asleep_service_that_is_to_have_a_server_always_is_started(sleeper, places, told, alice):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleeping.fall_asleep(fresh(sleeper))

    serving.edit(service=fresh(sleeper), description="", visibility="private", limits={"min_replicas": 1})

    after = fresh(sleeper)
    assert (after.state, after.job_id == sleeper.job_id) == ("queued", False)


def test_look_at_its_health_wakes_nothing(sleeper, places, told, alice):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleeping.fall_asleep(fresh(sleeper))

    answer = call("GET", f"{sleeper.url}/v2/health/ready", user=alice)

    assert (answer.status, answer.json["code"]) == (503, "service_asleep")
    assert fresh(sleeper).state == "asleep"


def test_service_that_cannot_be_woken_is_not_planned_at_each_call(sleeper, places, told, alice, monkeypatch):
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))
    assert sleeping.fall_asleep(fresh(sleeper))
    asked = []

    def refuse(service, version):
        asked.append(version)
        raise Invalid("You have no more cores.")

    monkeypatch.setattr(serving, "submit", refuse)

    answers = [call("POST", f"{sleeper.url}/predict", user=alice, body=b"") for _number in range(3)]

    assert {(answer.status, answer.json["detail"]) for answer in answers} == {(503, "You have no more cores.")}
    assert len(asked) == 1


def test_service_that_nobody_ever_asked_falls_asleep_too(sleeper, places, told):
    Service.objects.filter(pk=sleeper.pk).update(ready_attempt=0)
    Job.objects.filter(pk=sleeper.job_id).update(started_at=now() - timedelta(hours=1))

    sweep()

    assert fresh(sleeper).state == "asleep"


def test_one_service_that_breaks_a_sweep_holds_up_no_other(service, places, told, alice, version, monkeypatch):
    other = serving.create(user=alice, name="other", model_version=version, limits={"max_replicas": 2})
    bring(other.job, "running")
    places[other.job_id] = ("127.0.0.1", 9)
    real, order = scaling.tidy, []

    def breaks(one):
        order.append(one.pk)
        if len(order) == 1:
            raise RuntimeError("broken")
        real(one)

    monkeypatch.setattr(scaling, "tidy", breaks)

    scaling.sweep()

    assert len(order) == 2
    assert ServiceReplica.objects.count() == 1


@pytest.mark.sockets("a server that drips")
def test_server_that_drips_is_cut_off():
    import socket
    import threading
    import time

    from inference.services import exchanging

    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip():
        connection, _address = listening.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not over.wait(0.1):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    began = time.monotonic()
    with (
        pytest.raises((*exchanging.FAILURES,)),
        exchanging.connected(listening.getsockname(), longest_s=0.5) as connection,
    ):
        exchanging.ask(connection, "GET", "/", {}, most=1 << 20)

    assert time.monotonic() - began < 5
    over.set()
    thread.join(5)
    listening.close()
