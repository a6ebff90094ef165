"""A model made private, or deleted, while another person's service answers with it."""

from __future__ import annotations

import pytest

from aiplatform.lib.errors import StillInUse
from inference.registry import registration as registry
from inference.registry.models import Model
from inference.serving import endpoints, proxy, withdrawal
from inference.serving.kind import ServiceKind
from inference.serving.models import Service
from tests.factories import models as factory
from tests.inference.running import set_state
from workers.access.proxy.application import Refused
from workers.core.models import Attempt
from workers.core.runs import RunDir

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def shared(alice, tmp_path):
    """Alice's public model."""
    return factory.model_version(alice, tmp_path, visibility="public").model


@pytest.fixture
def bobs(bob, shared):
    """Bob's running service on it."""
    service = endpoints.create(user=bob, name="digits", model_version=shared.versions.get())
    set_state(service.job, "running")
    endpoints.remember_ready(service, 1)
    service.refresh_from_db()
    return service


def made_private(model: Model) -> None:
    registry.edit(model=model, description="", visibility="private")


def call(monkeypatch, user, service):
    monkeypatch.setattr(proxy, "find_user", lambda scope: user)
    monkeypatch.setattr(proxy, "close_old_connections", lambda: None)
    with pytest.raises(Refused) as refused:
        proxy._find({"headers": [], "path": f"{service.url}/predict"}, service.slug)
    return refused.value


def test_b08_model_made_private_stops_the_services_of_others(shared, bobs):
    made_private(shared)

    bobs.job.refresh_from_db()
    assert bobs.job.desired == "stop"
    assert any("can no longer access its model" in str(event.message) for event in bobs.job.events.all())


def test_b08_model_made_private_refuses_the_next_call_at_once(monkeypatch, shared, bob, bobs):
    Model.objects.filter(pk=shared.pk).update(visibility="private")  # however it came about

    refused = call(monkeypatch, bob, bobs)

    assert (refused.status, refused.code) == (410, "model_withdrawn")


def test_b08_model_made_private_refuses_the_next_start_and_every_launch(shared, bob, bobs, tmp_path):
    Model.objects.filter(pk=shared.pk).update(visibility="private")

    with pytest.raises(withdrawal.ModelWithdrawn):
        ServiceKind().prepare(bobs.job, Attempt(job=bobs.job, number=2), RunDir(tmp_path))
    set_state(bobs.job, "stopped")
    bobs.refresh_from_db()
    with pytest.raises(withdrawal.ModelWithdrawn, match=r"The owner of this service can no longer access its model."):
        endpoints.start(service=bobs, by=bob)


def test_b08_model_made_private_leaves_the_owners_own_service(alice, shared, bobs):
    own = endpoints.create(user=alice, name="mine", model_version=shared.versions.get())

    made_private(shared)

    own.job.refresh_from_db()
    assert own.job.desired == "run"
    assert not withdrawal.why_not(own)


def test_model_can_be_deleted_in_spite_of_anothers_service(shared, bob, bobs):
    registry.delete(model=shared)

    bobs.refresh_from_db()
    assert bobs.model_version is None
    assert bobs.model_name == "cells v1"
    assert bobs.job.desired == "stop"
    set_state(bobs.job, "stopped")
    with pytest.raises(withdrawal.ModelWithdrawn, match="was deleted"):
        endpoints.start(service=Service.objects.get(pk=bobs.pk), by=bob)


def test_model_deletion_is_refused_by_ones_own_service_and_says_whose(alice, shared):
    endpoints.create(user=alice, name="mine", model_version=shared.versions.get())

    with pytest.raises(StillInUse, match=r"cells v1 is still used by endpoint mine of Alice."):
        registry.delete(model=shared)


def test_service_pages_and_api_say_that_the_model_is_gone(shared, bobs, as_bob, as_alice):
    page = as_alice.get(f"/models/{shared.pk}/").content.decode()
    assert "1 endpoint of other users stops" in page

    registry.delete(model=shared)

    detail = as_bob.get(f"/services/{bobs.pk}/").content.decode()
    assert "The model of this endpoint was deleted." in detail
    assert as_bob.get("/services/").status_code == 200
    assert as_bob.get(f"/api/v1/services/{bobs.pk}/").json()["model"] == "cells v1"
