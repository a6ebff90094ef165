"""Requests of services counted by several processes, and who sees them."""

import pytest
from django.urls import reverse

from inference.serving import endpoints
from inference.serving.models import ServiceUsage
from inference.serving.traffic import histogram, statistics
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


def test_page_charts_requests_and_latency_by_hour(client, alice, service):
    counter = Counter()
    for status in (200, 200, 503):
        counter.count_response(Slot(service.pk, service.model_version_id, user=alice.pk), status, 0.02)
    counter.flush()
    client.force_login(alice)

    page = client.get(reverse("inference:service-usage", args=[service.pk]))

    requests, latency = page.context["charts"]
    assert (requests["title"], len(requests["at"])) == ("Requests per hour", 24)
    assert [(line["name"], line["last"]) for line in requests["lines"]] == [("Requests", 3), ("Failed", 1)]
    assert latency["lines"][0]["values"][-1] == pytest.approx(20, rel=0.2)
    assert latency["lines"][0]["values"][0] is None
    assert page.context["tabs"][0].name == "service-detail"


def test_tabs_of_an_endpoint_are_those_the_reader_may_open(client, alice, bob, service):
    endpoints.edit(service=service, description="", visibility="public")
    shown = {}
    for person in (alice, bob):
        client.force_login(person)
        page = client.get(reverse("inference:service-detail", args=[service.pk]))
        names = [tab.name for tab in page.context["tabs"]]
        shown[person.username] = names
        for name in names:
            assert client.get(reverse(f"inference:{name}", args=[service.pk])).status_code == 200
    assert shown["bob"] == ["service-detail", "service-usage"]
    assert shown["alice"][2:] == ["service-monitoring", "service-samples", "service-keys"]


def test_list_shows_owners_the_requests_of_the_last_day(client, alice, bob, service, django_assert_num_queries):
    endpoints.edit(service=service, description="", visibility="public")
    counter = Counter()
    for _number in range(1234):
        counter.count_response(Slot(service.pk, service.model_version_id, user=bob.pk), 200, 0.02)
    counter.flush()

    pages = {}
    for person in (alice, bob):
        client.force_login(person)
        pages[person] = client.get(reverse("inference:service-list")).content.decode()
    with django_assert_num_queries(1):
        figures = statistics.of_day([service])[service.pk]

    assert (figures.requests, figures.p95_ms) == (1234, pytest.approx(20, rel=0.2))
    assert "1,234" in pages[alice]
    assert "1,234" not in pages[bob]
