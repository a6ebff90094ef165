"""Another version tried on a part of a service's requests."""

import asyncio
import threading

import pytest
from django.urls import reverse
from rest_framework.test import APIClient

from aiplatform.lib.errors import Invalid, StillInUse
from inference.registry import registration as registry
from inference.serving import endpoints as serving
from inference.serving import model_swaps, proxy
from inference.serving.keys.callers import person
from inference.serving.models import Service, ServiceTrial
from inference.serving.traffic import differences, routing, statistics, trials
from inference.serving.traffic.counters import Counter, Slot
from inference.tasks import sweep
from tests.factories import models as factory
from tests.inference import pictures, tiny
from tests.inference.asking import call, one_call
from tests.inference.running import set_state
from tests.inference.service_trials import state, tried
from tests.running import free_port
from workers.access.proxy import endpoints

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path, name="tiny")


@pytest.fixture
def newer(alice, tmp_path, version):
    return factory.model_version(alice, tmp_path, name="newer")


@pytest.fixture
def service(alice, version):
    made = serving.create(user=alice, name="demo", model_version=version)
    set_state(made.job, "running")
    made.refresh_from_db()
    return made


@pytest.fixture
def places(monkeypatch):
    """Where the servers of jobs are, by the job's number; all of them answer."""
    addresses: dict[int, tuple[str, int]] = {}
    monkeypatch.setattr(endpoints, "endpoint", lambda job: addresses.get(job.pk))
    monkeypatch.setattr(serving, "is_ready", lambda address, key: True)
    monkeypatch.setattr(serving, "key_for", lambda job, attempt: "secret")
    return addresses


@pytest.fixture
def counter(monkeypatch):
    fresh = Counter()
    monkeypatch.setattr(fresh, "flush_soon", lambda: None)
    monkeypatch.setattr(routing, "COUNTER", fresh)
    return fresh


def withdrawn(service, number=None):
    raise trials.withdrawal.ModelWithdrawn("gone")


def test_promotion_moves_the_address_to_the_server_that_runs_already(alice, service, newer, places):
    old, trial = service.job, tried(service, newer, alice, places)

    trials.promote(service=service, by=alice)

    after = Service.objects.select_related("job", "old_job").get(pk=service.pk)
    assert (after.job, after.model_version, after.old_job, after.state) == (trial.job, newer, old, "ready")
    trial.refresh_from_db()
    assert (trial.outcome, state(trial.job), state(old)) == ("promoted", "up", "up")
    with pytest.raises(trials.NoTrial):
        trials.roll_back(service=service, by=alice)


def test_rolling_back_stops_what_was_tried_and_nothing_else(alice, service, newer, places):
    trial = tried(service, newer, alice, places)

    trials.roll_back(service=service, by=alice)

    assert (state(trial.job), state(service.job)) == ("ending", "up")
    service.refresh_from_db()
    assert service.model_version != newer


def test_version_that_does_not_answer_gets_nothing_and_is_not_promoted(alice, service, newer, places):
    trial = trials.start(service=service, version=newer, mode="canary", percent=99, by=alice)
    set_state(trial.job, "running")

    sweep()

    assert routing.split(service, person(service, alice), []).tried is None
    with pytest.raises(trials.NotReady):
        trials.promote(service=service, by=alice)


def test_trial_of_a_service_that_ended_by_itself_ends_too(alice, service, newer, places):
    trial = tried(service, newer, alice, places)
    set_state(service.job, "failed")

    sweep()

    trial.refresh_from_db()
    assert (trial.outcome, trial.message.code, state(trial.job)) == ("halted", "trial.service_ended", "ending")


def test_version_that_is_no_longer_shared_gets_nothing_at_once(alice, service, newer, places, monkeypatch):
    trial = tried(service, newer, alice, places)
    monkeypatch.setattr(trials.withdrawal, "usable_version", withdrawn)

    assert routing.split(service, person(service, alice), []).tried is None
    with pytest.raises(trials.NotReady):
        trials.promote(service=service, by=alice)
    sweep()
    trial.refresh_from_db()
    assert (trial.outcome, trial.message.code) == ("halted", "trial.withdrawn")


@pytest.mark.parametrize("end", ["failed", "stopped"])
def test_trial_whose_server_ends_is_halted(alice, service, newer, places, end):
    trial = tried(service, newer, alice, places)
    set_state(trial.job, end)

    sweep()

    trial.refresh_from_db()
    assert (trial.outcome, trial.message.code) == ("halted", "trial.server_ended")


@pytest.mark.parametrize(
    ("requests", "failed", "beside_failed", "outcome"),
    [(200, 20, 4, "halted"), (199, 20, 4, ""), (200, 2, 4, ""), (400, 30, 60, ""), (6, 6, 0, "halted"), (2, 2, 0, "")],
)
def test_trial_is_halted_once_it_is_sure_to_fail_more(
    alice, service, newer, places, requests, failed, beside_failed, outcome
):
    trial = tried(service, newer, alice, places)
    counter = Counter()
    for candidate, bad, count in ((True, failed, requests), (False, beside_failed, 800)):
        slot = Slot(service.pk, newer.pk, trial.pk, candidate, alice.pk)
        for number in range(count):
            counter.count_response(slot, 500 if number < bad else 200, 0.01)
    counter.flush()

    sweep()

    trial.refresh_from_db()
    assert trial.outcome == outcome
    assert state(trial.job) == ("ending" if outcome else "up")
    if outcome:
        message = "20 of its 200 requests failed, compared with 4 of 800 of the other model."
        assert str(trial.message) == (message if requests == 200 else "6 of its 6 requests failed.")


def test_wrong_trials_are_refused_and_start_nothing(alice, bob, service, version, newer, tmp_path, places):
    other = factory.model_version(alice, tmp_path, name="other", task="tagging")
    for options, field in (
        ({"version": version}, "model_version"),
        ({"version": other}, "model_version"),
        ({"percent": 100}, "percent"),
        ({"percent": 0}, "percent"),
        ({"mode": "blue"}, "mode"),
    ):
        with pytest.raises(Invalid) as refused:
            trials.start(
                **{"service": service, "version": newer, "mode": "canary", "percent": 10, "by": alice} | options
            )
        assert refused.value.blamed == field
    assert not ServiceTrial.objects.exists()
    tried(service, newer, alice, places)
    with pytest.raises(trials.TrialOpen):
        trials.start(service=service, version=newer, mode="shadow", percent=10, by=alice)
    with pytest.raises(Invalid):
        model_swaps.change_model(service=service, version=newer, by=alice)
    with pytest.raises(StillInUse):
        registry.delete_version(version=newer)


@pytest.mark.parametrize("act", ["stop", "delete"])
def test_service_that_stops_or_goes_ends_what_it_tries(alice, service, newer, places, act):
    trial = tried(service, newer, alice, places)

    getattr(serving, act)(service=Service.objects.get(pk=service.pk), by=alice)

    assert state(trial.job) == "ending"
    assert not ServiceTrial.objects.filter(outcome="").exists()


def test_part_of_the_requests_is_kept_and_callers_of_an_ab_test_stay(alice, service, newer, places):
    trial = tried(service, newer, alice, places, percent=25)
    own = routing.Upstream("127.0.0.1", 1)

    def ports(caller, count):
        split = routing.split(service, person(service, alice), [own])
        scope = {"headers": [(b"x-client-id", caller)]}
        return [split(scope, "predict").port for _number in range(count)]

    share = ports(b"", 4000).count(7) / 4000
    assert share == pytest.approx(0.25, abs=0.035)  # five standard deviations
    assert routing.split(service, person(service, alice), [own])({"headers": []}, "v2/health/ready").port == 1
    ServiceTrial.objects.filter(pk=trial.pk).update(mode="ab")
    assert all(len(set(ports(b"caller %d" % number, 20))) == 1 for number in range(20))
    chosen = [ports(b"caller %d" % number, 1)[0] for number in range(300)]
    assert chosen.count(7) / 300 == pytest.approx(0.25, abs=0.12)


@pytest.fixture(scope="module")
def two_ports(serve, tmp_path_factory):
    return [
        serve(tiny.detector(tmp_path_factory.mktemp(name)), AIP_SERVICE_KEY="secret", AIP_MODEL_NAME=name,
              AIP_MODEL_ALSO="tiny")
        for name in ("tiny", "newer")
    ]  # fmt: skip


PICTURE = pictures.with_boxes({(16, 32, 32, 48): "green"})


@pytest.mark.long
@pytest.mark.sockets("two model servers")
def test_requests_reach_both_models_and_are_counted_apart(alice, service, newer, places, two_ports, counter):
    places[service.job_id] = ("127.0.0.1", two_ports[0])
    trial = tried(service, newer, alice, places, port=two_ports[1])

    models = [call("POST", f"{service.url}/predict", user=alice, body=PICTURE).json["model"] for _n in range(30)]
    response = call("POST", f"{service.url}/v2/models/tiny/infer", user=alice, body=b"{}")

    assert set(models) == {"tiny", "newer"}
    assert response.status == 400  # both know the name that callers use
    counter.flush()
    ours, beside = statistics.of_trial(trial)
    assert (ours.requests + beside.requests, ours.failed, beside.failed) == (31, 0, 0)
    assert ours.requests - models.count("newer") in (0, 1)
    assert ours.p50_ms > 0
    assert ours.bytes_in >= models.count("newer") * len(PICTURE)


@pytest.mark.sockets("a model server")
def test_request_whose_model_has_gone_is_answered_by_the_other_one(alice, service, newer, places, two_ports, counter):
    places[service.job_id] = ("127.0.0.1", two_ports[0])
    tried(service, newer, alice, places, port=free_port(), percent=99)

    answers = [call("POST", f"{service.url}/predict", user=alice, body=PICTURE) for _number in range(10)]

    assert [answer.status for answer in answers] == [200] * 10


@pytest.mark.sockets("a model server")
def test_request_that_a_strange_server_read_is_to_be_sent_again(
    alice, service, newer, places, two_ports, counter, serve, tmp_path
):
    places[service.job_id] = ("127.0.0.1", two_ports[0])
    strange = serve(tiny.detector(tmp_path), AIP_SERVICE_KEY="of somebody else")
    tried(service, newer, alice, places, port=strange, percent=99)

    answers = [call("POST", f"{service.url}/predict", user=alice, body=PICTURE) for _number in range(4)]

    assert {answer.status for answer in answers} <= {200, 503}
    assert 503 in {answer.status for answer in answers}
    assert {answer.headers.get("retry-after") for answer in answers if answer.status == 503} == {"1"}


@pytest.mark.sockets("two model servers")
def test_shadow_gets_copies_and_its_answers_are_compared(alice, service, newer, places, two_ports, counter):
    places[service.job_id] = ("127.0.0.1", two_ports[0])
    trial = tried(service, newer, alice, places, port=two_ports[1], mode="shadow", percent=100)

    answers = [call("POST", f"{service.url}/predict", user=alice, body=PICTURE) for _number in range(5)]

    assert {answer.json["model"] for answer in answers} == {"tiny"}
    counter.flush()
    ours, beside = statistics.of_trial(trial)
    assert (ours.requests, beside.requests, ours.compared, ours.agreement) == (5, 5, 5, 1.0)
    assert statistics.summarize(statistics.since(service, "day")).requests == 5  # copies are nobody's requests


def differ(service, newer, alice, places, two_ports, monkeypatch, below):
    places[service.job_id] = ("127.0.0.1", two_ports[0])
    serving.edit(service=service, description="", visibility="private", limits={"keep_differing": below})
    tried(service, newer, alice, places, port=two_ports[1], mode="shadow", percent=100)
    monkeypatch.setattr(routing, "agreement", lambda first, other: 0.5)
    differences._kept.clear()
    for body in (b"no picture", PICTURE, PICTURE):
        call("POST", f"{service.url}/predict", user=alice, body=body)
    return list(service.samples.all())


@pytest.mark.sockets("two model servers")
def test_picture_that_two_models_see_differently_is_kept(
    alice, service, newer, places, two_ports, counter, monkeypatch
):
    (sample,) = differ(service, newer, alice, places, two_ports, monkeypatch, 60)

    assert (sample.why, sample.by, sample.file.read_bytes()) == ("differing", None, PICTURE)
    assert sample.answers


@pytest.mark.sockets("two model servers")
def test_picture_that_is_seen_alike_enough_is_not_kept(alice, service, newer, places, two_ports, counter, monkeypatch):
    assert differ(service, newer, alice, places, two_ports, monkeypatch, 50) == []


@pytest.mark.sockets("a model server")
def test_shadow_that_fails_is_nobodys_trouble(alice, service, newer, places, two_ports, counter):
    places[service.job_id] = ("127.0.0.1", two_ports[0])
    trial = tried(service, newer, alice, places, port=free_port(), mode="shadow", percent=100)

    assert call("POST", f"{service.url}/predict", user=alice, body=PICTURE).status == 200

    counter.flush()
    ours, _beside = statistics.of_trial(trial)
    assert (ours.requests, ours.failed) == (1, 1)


@pytest.mark.sockets("two model servers")
def test_promotion_under_load_loses_no_request(alice, service, newer, places, two_ports, counter, monkeypatch):
    from accounts.services import tokens

    monkeypatch.setattr("workers.access.proxy.application.REMEMBERED_S", 0.05)
    places[service.job_id] = ("127.0.0.1", two_ports[0])
    tried(service, newer, alice, places, port=two_ports[1], percent=10)
    headers = {"Authorization": f"Bearer {tokens.issue(user=alice, name='t')[1]}"}
    statuses = []

    async def load():
        app, over = proxy.new(), threading.Event()

        async def send_request():
            while not over.is_set():
                sent = await one_call(app, "POST", f"{service.url}/predict", headers, PICTURE, False)
                statuses.append(sent[0]["status"])

        async def more() -> None:
            answered = len(statuses)
            while len(statuses) < answered + 8 and not any(caller.done() for caller in callers):
                await asyncio.sleep(0.05)  # pause: requests go on meanwhile

        callers = [asyncio.create_task(send_request()) for _number in range(3)]
        await more()
        await asyncio.to_thread(trials.change_part, service=service, percent=50, by=alice)
        await more()
        await asyncio.to_thread(trials.promote, service=service, by=alice)
        await more()
        over.set()
        await asyncio.gather(*callers)
        await app.close()

    asyncio.run(asyncio.wait_for(load(), 120))

    assert len(statuses) >= 24
    assert set(statuses) == {200}


def test_api_tries_and_tells(api, bob, alice, service, newer, places):
    route = f"/api/v1/services/{service.pk}"
    stranger = APIClient()
    stranger.force_authenticate(bob)
    assert stranger.post(f"{route}/trial/", {"model_version": newer.pk}, format="json").status_code == 404
    assert api.post(f"{route}/trial/", {"percent": 10}, format="json").status_code == 400
    made = api.post(f"{route}/trial/", {"model_version": "newer:1", "percent": 5}, format="json")
    assert (made.status_code, made.json()["ready"], made.json()["outcome"]) == (202, False, "")
    assert api.post(f"{route}/promote/").status_code == 409
    assert api.patch(f"{route}/trial/", {"percent": 20}, format="json").json()["percent"] == 20
    assert api.post(f"{route}/roll-back/").json()["outcome"] == "rolled_back"
    assert [row["percent"] for row in api.get(f"{route}/trials/").json()] == [20]
    assert api.get(f"{route}/usage/?span=week").json()["whole"]["requests"] == 0


def test_pages_try_promote_and_show_usage(client, alice, olga, service, newer, places):
    client.force_login(alice)
    page, form = (reverse(f"inference:service-{name}", args=[service.pk]) for name in ("detail", "trial"))
    assert client.get(form).status_code == 200
    assert client.post(form, {"model_version": newer.pk, "mode": "canary", "percent": 100}).status_code == 422
    assert client.post(form, {"model_version": newer.pk, "mode": "canary", "percent": 10}).headers["Location"] == page
    trial = ServiceTrial.objects.get()
    assert reverse("inference:service-trial-promote", args=[service.pk]) not in client.get(page).content.decode()
    set_state(trial.job, "running")
    places[trial.job_id] = ("127.0.0.1", 7)
    counter = Counter()
    counter.count_response(Slot(service.pk, newer.pk, trial.pk, True, alice.pk), 200, 0.01)
    counter.count_response(Slot(service.pk, service.model_version_id, trial.pk, False, olga.pk), 500, 0.02)
    counter.flush()
    shown = client.get(page).content.decode()
    assert "About 199 more requests are needed" in shown
    usage = reverse("inference:service-usage", args=[service.pk])
    assert "Olga" in client.get(usage).content.decode()
    client.post(reverse("inference:service-trial-part", args=[service.pk]), {"percent": 30})
    trial.refresh_from_db()
    assert trial.percent == 30
    client.post(reverse("inference:service-trial-promote", args=[service.pk]))
    service.refresh_from_db()
    assert service.model_version == newer
    assert "Promoted" in client.get(usage).content.decode()
