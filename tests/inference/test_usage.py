"""Requests of services counted by several processes, and who sees them."""

import pytest
from django.urls import reverse

from inference.serving import endpoints
from inference.serving.models import ServiceUsage
from inference.serving.traffic import histogram
from inference.serving.traffic.counters import Counter, Slot
from tests.factories import models as factory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def service(alice, tmp_path):
    return endpoints.create(user=alice, name="demo", model_version=factory.model_version(alice, tmp_path))


def test_counts_of_several_processes_add_up(alice, service):
    slot = Slot(service.pk, service.model_version_id, user=alice.pk)
    first, second = Counter(), Counter()
    for counter, status in ((first, 200), (second, 200), (second, 503), (first, 404)):
        counter.count_response(slot, status, 0.02, 10, 20)
    first.flush()
    second.flush()
    first.flush()

    row = ServiceUsage.objects.get()
    assert (row.requests, row.failed, row.refused, row.bytes_in, row.bytes_out) == (4, 1, 1, 40, 80)
    assert histogram.percentile(row.latencies, 0.5) == pytest.approx(0.02, rel=0.2)
    service.delete()
    first.count_response(slot, 200, 0.01)
    first.flush()  # the service is gone; nothing to write


def test_others_see_their_own_usage_alone(client, alice, bob, service):
    endpoints.edit(service=service, description="", visibility="public")
    counter = Counter()
    for person, count in ((alice, 3), (bob, 2)):
        for _number in range(count):
            counter.count_response(Slot(service.pk, service.model_version_id, user=person.pk), 200, 0.01)
    counter.flush()
    client.force_login(bob)

    page = client.get(reverse("inference:service-usage", args=[service.pk]))

    assert page.context["whole"].requests == 2
    assert page.context["callers"] == []
