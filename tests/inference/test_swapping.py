"""Another model for a service: the old one answers until the new one does."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils.timezone import now

from aiplatform.lib.errors import Invalid
from inference.registry import registration as registry
from inference.serving import endpoints as serving
from inference.serving import model_swaps
from inference.serving.kind import ServiceKind
from inference.serving.models import Service
from inference.tasks import sweep
from tests.factories import models as factory
from tests.inference.running import set_state
from workers.access.proxy import endpoints
from workers.core.runs import RunDir

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(alice, tmp_path):
    return factory.model_version(alice, tmp_path)


@pytest.fixture
def newer(alice, tmp_path, version):
    return factory.model_version(alice, tmp_path, name="newer", task="tagging")


@pytest.fixture
def service(alice, version):
    made = serving.create(user=alice, name="demo", model_version=version)
    set_state(made.job, "running")
    made.refresh_from_db()
    return made


@pytest.fixture
def answering(monkeypatch):
    """Jobs whose servers answer, by number."""
    job_ids: set[int] = set()
    monkeypatch.setattr(endpoints, "endpoint", lambda job: ("127.0.0.1", job.pk) if job.pk in job_ids else None)
    monkeypatch.setattr(serving, "is_ready", lambda address, key: True)
    return job_ids


def reload(service):
    return Service.objects.select_related("job", "next_job", "old_job", "next_version", "owner").get(pk=service.pk)


def test_address_leads_to_the_new_model_once_it_answers_and_the_old_one_is_stopped_later(
    alice, service, newer, answering
):
    old = service.job
    model_swaps.change_model(service=service, version=newer, by=alice)
    service = reload(service)
    assert (service.job, service.next_version, service.model_version) == (old, newer, service.model_version)
    assert service.next_job.spec["model_version"] == newer.pk

    sweep()
    assert reload(service).job == old  # it does not run yet
    set_state(service.next_job, "running")
    sweep()
    assert reload(service).job == old  # it runs and does not answer yet
    answering.add(service.next_job_id)
    sweep()

    after = reload(service)
    assert (after.job, after.model_version, after.next_job, after.old_job) == (service.next_job, newer, None, old)
    assert after.state == "ready"
    old.refresh_from_db()
    assert old.desired == "run"  # it finishes what it is at
    Service.objects.update(swapped_at=now() - timedelta(minutes=1))
    sweep()
    old.refresh_from_db()
    assert old.desired == "stop"
    assert reload(service).old_job is None


def test_new_model_that_fails_leaves_the_old_one_answering(client, alice, service, newer, answering):
    model_swaps.change_model(service=service, version=newer, by=alice)
    set_state(reload(service).next_job, "failed")

    sweep()

    assert reload(service).job == service.job
    client.force_login(alice)
    page = reverse("inference:service-detail", args=[service.pk])
    assert "The previous model continues to serve" in client.get(page).content.decode()
    given_up = client.post(
        reverse("inference:service-model", args=[service.pk]), {"model_version": service.model_version_id}
    )
    assert given_up.headers["Location"] == page
    assert reload(service).next_job is None


def test_change_of_mind_stops_the_server_on_its_way(alice, service, newer, version, tmp_path):
    third = factory.model_version(alice, tmp_path, name="third", task="segmentation")
    model_swaps.change_model(service=service, version=newer, by=alice)
    first = reload(service).next_job

    model_swaps.change_model(service=reload(service), version=third, by=alice)

    first.refresh_from_db()
    assert first.is_final or first.desired == "stop"
    assert reload(service).next_version == third
    model_swaps.change_model(service=reload(service), version=version, by=alice)
    assert reload(service).next_job is None
    with pytest.raises(Invalid):
        model_swaps.change_model(service=reload(service), version=version, by=alice)


def test_stopped_service_changes_at_once(alice, service, newer):
    set_state(service.job, "stopped")

    model_swaps.change_model(service=reload(service), version=newer, by=alice)

    assert (reload(service).model_version, reload(service).next_job) == (newer, None)


def test_service_whose_server_died_meanwhile_waits_for_nothing(alice, service, newer):
    model_swaps.change_model(service=service, version=newer, by=alice)
    set_state(service.job, "failed")

    sweep()

    assert (reload(service).model_version, reload(service).next_job) == (newer, None)


@pytest.mark.parametrize("act", ["stop", "delete"])
def test_stop_and_delete_end_all_servers(alice, service, newer, act):
    model_swaps.change_model(service=service, version=newer, by=alice)
    beside = reload(service).next_job

    getattr(serving, act)(service=reload(service), by=alice)

    beside.refresh_from_db()
    assert beside.is_final or beside.desired == "stop"


def test_each_server_gets_the_model_it_was_started_for(alice, service, newer, version):
    model_swaps.change_model(service=service, version=newer, by=alice)
    service = reload(service)
    set_state(service.next_job, "starting")
    for job, expected in ((service.job, version), (service.next_job, newer)):
        run = RunDir.for_attempt(job.pk, 1)
        run.code.mkdir(parents=True, exist_ok=True)
        launch = ServiceKind().prepare(job, job.attempts.get(), run)
        assert launch.env["AIP_MODEL_DIR"] == str(expected.path)
    from aiplatform.lib.errors import StillInUse

    with pytest.raises(StillInUse):
        registry.delete_version(version=newer)


def test_api_and_page_change_the_model(api, client, alice, bob, service, newer):
    answer = api.post(f"/api/v1/services/{service.pk}/model/", {"model_version": "newer:1"}, format="json")
    assert (answer.status_code, answer.json()["next_version"]) == (202, newer.pk)
    assert answer.json()["next_state"] == "queued"
    client.force_login(alice)
    form = reverse("inference:service-model", args=[service.pk])
    assert client.get(form).status_code == 200
    assert client.post(form, {"model_version": 0}).status_code == 422
    client.force_login(bob)
    assert client.post(form, {"model_version": newer.pk}).status_code == 404
