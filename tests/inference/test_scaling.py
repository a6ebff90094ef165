"""Services with as many servers as their callers need."""

from datetime import timedelta

import pytest
from django.core.cache import cache
from django.urls import reverse
from django.utils.timezone import now
from rest_framework.test import APIClient

from aiplatform.lib.errors import Invalid
from inference.serving import endpoints, model_swaps
from inference.serving.keys.callers import person
from inference.serving.models import ServiceReplica
from inference.serving.scaling import rule, scaling
from inference.serving.traffic import routing, trials
from inference.tasks import scale, sweep
from tests.factories import models as factory
from tests.inference import pictures, tiny
from tests.inference.asking import call
from tests.inference.running import set_state
from tests.inference.scaled import CALM, ENOUGH, ending, fresh, run_due, up
from tests.running import free_port
from workers.core.models import Job

pytestmark = pytest.mark.django_db(transaction=True)


def test_service_grows_to_what_it_may_have_and_shrinks_again(scaled, places, server_load, monkeypatch):
    for number in (2, 3, 4, 5):
        run_due(scaled)
        for row in scaled.replicas.all():
            up(row, places, number)
    rows = list(scaled.replicas.all())
    assert len(rows) == 2  # three with the first
    sweep()
    assert len(routing.servers(fresh(scaled))) == 3

    server_load["look"] = CALM
    monkeypatch.setattr(rule, "COOLDOWN_S", 0.0)
    run_due(scaled)
    (left,) = scaled.replicas.exclude(leaving_at=None)
    assert left == rows[1]
    assert len(routing.servers(fresh(scaled))) == 2
    assert not ending(left.job)  # it ends what it is at
    ServiceReplica.objects.filter(pk=left.pk).update(leaving_at=now() - 2 * scaling.DRAINING)
    run_due(scaled)
    assert ending(left.job)


def test_two_looks_at_once_start_one_server(scaled, places, server_load):
    service_ = model_swaps.refresh(fresh(scaled))

    scaling._grow(service_, 1)
    scaling._grow(service_, 1)

    assert scaled.replicas.count() == 1


def test_refused_growth_is_told_and_not_tried_again_at_once(scaled, places, server_load, monkeypatch, client, alice):
    versions = []

    def refuse(scaled, version):
        versions.append(version)
        raise Invalid("You have no more cores.")

    monkeypatch.setattr(endpoints, "submit", refuse)

    run_due(scaled)
    run_due(scaled)

    assert len(versions) == 1
    client.force_login(alice)
    page = client.get(reverse("inference:service-detail", args=[scaled.pk])).content.decode()
    assert "You have no more cores." in page


def test_server_that_failed_is_forgotten_and_no_other_is_started_for_a_while(scaled, places, server_load):
    run_due(scaled)
    set_state(scaled.replicas.get().job, "failed")

    run_due(scaled)

    assert scaled.replicas.count() == 0
    cache.clear()
    run_due(scaled)
    assert scaled.replicas.count() == 1


def test_another_server_becomes_the_first_where_that_failed(scaled, places, server_load):
    run_due(scaled)
    row = scaled.replicas.get()
    up(row, places, 2)
    run_due(scaled)
    set_state(scaled.job, "failed")

    after = run_due(scaled)

    assert (after.job_id, after.state) == (row.job_id, "ready")


def test_stopping_a_service_stops_all_its_servers(scaled, places, server_load, alice):
    run_due(scaled)
    row = scaled.replicas.get()
    up(row, places, 2)

    endpoints.stop(service=fresh(scaled), by=alice)

    assert ending(row.job)
    assert scaled.replicas.count() == 0


def test_change_of_the_model_waits_for_as_many_servers(scaled, places, server_load, alice, tmp_path):
    newer = factory.model_version(alice, tmp_path, name="newer")
    run_due(scaled)
    old = scaled.replicas.get()
    up(old, places, 2)
    server_load["look"] = rule.LoadSample(0.1, 0.9, 0)
    run_due(scaled)

    model_swaps.change_model(service=fresh(scaled), version=newer, by=alice)
    held = fresh(scaled)
    set_state(held.next_job, "running")
    places[held.next_job_id] = ("127.0.0.1", 3)
    assert run_due(scaled).model_version != newer  # its second server is on its way
    (second,) = scaled.replicas.filter(version=newer)
    up(second, places, 4)
    run_due(scaled)

    assert run_due(scaled).model_version == newer
    assert {server.port for server in routing.servers(fresh(scaled))} == {3, 4}
    old.refresh_from_db()
    assert old.leaving_at is not None


def test_promoted_trial_waits_for_as_many_servers(scaled, places, server_load, alice, tmp_path):
    run_due(scaled)
    up(scaled.replicas.get(), places, 2)
    server_load["look"] = ENOUGH
    run_due(scaled)
    newer, first = factory.model_version(alice, tmp_path, name="newer"), scaled.job
    trial = trials.start(service=fresh(scaled), version=newer, mode="canary", percent=50, by=alice)
    up(trial, places, 3)
    sweep()

    trials.promote(service=fresh(scaled), by=alice)

    before = run_due(scaled)
    assert (before.job, before.next_job) == (first, trial.job)
    up(scaled.replicas.get(version=newer), places, 4)
    run_due(scaled)
    after = run_due(scaled)
    assert (after.job, after.model_version, after.next_job) == (trial.job, newer, None)
    assert len(routing.servers(after)) == 2
    assert not ending(trial.job)


def test_given_up_change_ends_the_servers_started_for_it(scaled, places, server_load, alice, tmp_path):
    newer = factory.model_version(alice, tmp_path, name="newer")
    run_due(scaled)
    up(scaled.replicas.get(), places, 2)
    server_load["look"] = rule.LoadSample(0.1, 0.9, 0)
    run_due(scaled)
    model_swaps.change_model(service=fresh(scaled), version=newer, by=alice)
    started = scaled.replicas.get(version=newer)

    model_swaps.change_model(service=fresh(scaled), version=scaled.model_version, by=alice)
    run_due(scaled)

    started.refresh_from_db()
    assert started.leaving_at is not None


@pytest.mark.sockets("two model servers of its own")
def test_requests_go_to_the_server_with_the_fewest_and_past_one_that_is_away(
    scaled, places, server_load, alice, serve, tmp_path
):
    ports = [
        serve(tiny.classifier(tmp_path / str(number)), AIP_SERVICE_KEY="secret", AIP_MODEL_VERSION=str(number))
        for number in (1, 2)
    ]
    places[scaled.job_id] = ("127.0.0.1", ports[0])
    run_due(scaled)
    row = scaled.replicas.get()
    up(row, places, ports[1])
    run_due(scaled)
    versions = {
        call("POST", f"{scaled.url}/predict", user=alice, body=pictures.plain()).json["version"] for _n in range(30)
    }
    assert versions == {"1", "2"}

    places[row.job_id] = ("127.0.0.1", free_port())
    answers = [call("POST", f"{scaled.url}/predict", user=alice, body=pictures.plain()) for _number in range(10)]
    assert {answer.status for answer in answers} == {200}


def test_least_busy_server_is_chosen(scaled, places, server_load, alice):
    run_due(scaled)
    up(scaled.replicas.get(), places, 2)
    run_due(scaled)
    split = routing.split(fresh(scaled), person(scaled, alice), routing.servers(fresh(scaled)))
    first = split({"headers": []}, "predict")
    with first.load, first.load:
        others = {split({"headers": []}, "predict").port for _number in range(20)}

    assert others == {3 - first.port}


def test_scale_of_a_service_that_was_deleted_does_nothing(scaled):
    number = scaled.pk
    scaled.delete()

    scale(number)


def test_bounds_of_servers_must_fit_each_other(scaled, alice):
    with pytest.raises(Invalid) as raised:
        endpoints.edit(service=scaled, description="", visibility="private", limits={"min_replicas": 4})
    assert raised.value.blamed == "max_replicas"
    api = APIClient()
    api.force_authenticate(alice)
    route = f"/api/v1/services/{scaled.pk}/"
    assert api.patch(route, {"limits": {"max_replicas": 0}}, format="json").status_code == 400
    assert api.patch(route, {"limits": {"most": 2}}, format="json").status_code == 400
    content = api.patch(route, {"limits": {"min_replicas": 2}}, format="json").json()
    assert (content["limits"]["min_replicas"], content["limits"]["max_replicas"], content["servers"]) == (2, 3, 0)


def test_service_told_to_stop_does_not_grow_while_it_stops(scaled, places, server_load, alice):
    endpoints.edit(service=scaled, description="", visibility="private", limits={"min_replicas": 2})
    endpoints.stop(service=fresh(scaled), by=alice)

    run_due(scaled)
    scaling._grow(fresh(scaled), 1)

    assert scaled.replicas.count() == 0


def test_first_server_stopped_by_its_job_takes_the_others_along(scaled, places, server_load, alice):
    run_due(scaled)
    row = scaled.replicas.get()
    up(row, places, 2)
    server_load["look"] = rule.LoadSample(0.1, 0.9, 0)
    run_due(scaled)
    set_state(scaled.job, "stopped")

    answer = call("POST", f"{scaled.url}/predict", user=alice, body=b"")
    run_due(scaled)

    assert answer.status == 410
    assert ending(row.job)
    assert scaled.replicas.count() == 0


def test_stop_ends_what_is_left_beside_a_server_that_is_over(scaled, places, server_load, alice):
    run_due(scaled)
    row = scaled.replicas.get()
    set_state(scaled.job, "stopped")

    endpoints.stop(service=fresh(scaled), by=alice)

    assert ending(row.job)
    with pytest.raises(endpoints.NotUp):
        endpoints.stop(service=fresh(scaled), by=alice)


def test_stop_that_meets_a_move_is_asked_again(scaled, monkeypatch):
    from workers.jobs.transitions import StaleReport

    stopped, real = [], endpoints.actions.stop

    def stop(job, **more):
        stopped.append(job.pk)
        if len(stopped) == 1:
            raise StaleReport("moved")
        return real(job, **more)

    monkeypatch.setattr(endpoints.actions, "stop", stop)

    endpoints.end(scaled.job, None)

    assert len(stopped) == 2
    assert ending(scaled.job)


def test_server_that_no_service_knows_is_ended_after_a_while(scaled, places, server_load):
    run_due(scaled)
    row = scaled.replicas.get()
    job = row.job
    up(row, places, 2)
    ServiceReplica.objects.all().delete()
    scaling.end_orphans()
    assert not ending(job)
    Job.objects.update(created_at=now() - timedelta(hours=1))

    scaling.end_orphans()

    assert ending(job)
    assert not ending(scaled.job)


def test_server_whose_version_was_deleted_leaves(scaled, places, server_load):
    run_due(scaled)
    row = scaled.replicas.get()
    up(row, places, 2)
    ServiceReplica.objects.filter(pk=row.pk).update(version=None)

    run_due(scaled)

    row.refresh_from_db()
    assert row.leaving_at is not None


def test_failed_change_of_the_model_lets_its_further_servers_go(scaled, places, server_load, alice, tmp_path):
    newer = factory.model_version(alice, tmp_path, name="newer")
    run_due(scaled)
    up(scaled.replicas.get(), places, 2)
    server_load["look"] = rule.LoadSample(0.1, 0.9, 0)
    run_due(scaled)
    model_swaps.change_model(service=fresh(scaled), version=newer, by=alice)
    set_state(fresh(scaled).next_job, "failed")

    run_due(scaled)

    assert scaled.replicas.get(version=newer).leaving_at is not None


def test_one_service_that_breaks_a_sweep_holds_up_no_other(scaled, places, server_load, alice, monkeypatch):
    other = endpoints.create(user=alice, name="other", model_version=scaled.model_version, limits={"max_replicas": 2})
    set_state(other.job, "running")
    places[other.job_id] = ("127.0.0.1", 9)
    real, order = scaling.tidy, []

    def breaks(service_):
        order.append(service_.pk)
        if len(order) == 1:
            raise RuntimeError("broken")
        real(service_)

    monkeypatch.setattr(scaling, "tidy", breaks)

    scaling.sweep()

    assert len(order) == 2
    assert ServiceReplica.objects.count() == 1


@pytest.mark.sockets("a server that drips")
def test_server_that_drips_is_cut_off():
    import socket
    import threading
    import time

    from inference.serving import requests

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
        pytest.raises((*requests.FAILURES,)),
        requests.connected(listening.getsockname(), longest_s=0.5) as connection,
    ):
        requests.send(connection, "GET", "/", {}, max_bytes=1 << 20)

    assert time.monotonic() - began < 5
    over.set()
    thread.join(5)
    listening.close()
