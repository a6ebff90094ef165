"""What everybody is told of the platform: that something is wrong, what its words mean, which version it is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils.timezone import now

from aiplatform import __version__
from aiplatform.lib import header_sources
from aiplatform.pages import handbook
from tests.factories import work
from workers.core import leases
from workers.core.models import Alarm, AlarmRule, Lease, Node
from workers.resources.monitoring import trouble


def banner(client) -> str:
    header_sources.forget_troubles()
    page = client.get("/account/").content.decode()
    return page.split('id="troubles"')[1].split("</div>")[0] if 'id="troubles"' in page else ""


@pytest.fixture
def running_platform(db):
    """One live machine and a scheduler that acted just now."""
    node = work.node("n1")
    Lease.objects.create(name=leases.SCHEDULER, renewed_at=now())
    with header_sources.TROUBLE_SOURCE.temporarily(trouble.sentences):
        yield node


def test_no_banner_while_all_is_well(running_platform, as_alice):
    assert banner(as_alice) == ""


def test_banner_says_that_no_machine_answers(running_platform, as_alice, as_olga):
    Node.objects.update(heartbeat_at=now() - timedelta(minutes=5))

    assert "No node responds at the moment: no jobs start. Waiting jobs" in banner(as_alice)
    assert "Administrators see this error as well." in banner(as_alice)
    assert 'href="/alarms/"' in banner(as_olga)


def test_banner_keeps_still_while_one_machine_of_two_answers(running_platform, as_alice):
    Node.objects.create(name="gone", heartbeat_at=now() - timedelta(hours=1))

    assert banner(as_alice) == ""


def test_banner_says_that_nobody_plans_the_queue(running_platform, as_alice):
    Lease.objects.update(renewed_at=now() - timedelta(minutes=2))

    assert "The scheduler is not running" in banner(as_alice)


def test_banner_says_that_the_disk_is_nearly_full_until_the_alarm_has_ended(running_platform, as_anna):
    rule = AlarmRule.objects.create(key="disk_full")
    alarm = Alarm.objects.create(rule=rule, subject="n1", severity="critical", raised_at=now())

    assert "almost full" in banner(as_anna)
    Alarm.objects.filter(pk=alarm.pk).update(ended_at=now())
    assert banner(as_anna) == ""


def test_banner_is_looked_up_once_for_many_pages(running_platform, as_alice, django_assert_max_num_queries):
    header_sources.forget_troubles()
    as_alice.get("/account/")
    Lease.objects.update(renewed_at=now() - timedelta(minutes=2))

    assert 'id="troubles"' not in as_alice.get("/account/").content.decode()
    with django_assert_max_num_queries(0):
        assert header_sources.troubles() == []


def test_about_names_version_licence_and_browsers_and_is_reached_from_every_page(as_alice):
    page = as_alice.get("/about/").content.decode()

    assert __version__ in page
    assert "Apache License 2.0" in page
    assert all(name in page and number in page for name, number in handbook.BROWSERS)
    assert 'href="/about/"' in as_alice.get("/account/").content.decode()
    assert 'href="/help/"' in as_alice.get("/account/").content.decode()


def test_error_page_and_api_link_the_explanation_of_the_code(as_alice):
    page = as_alice.get("/datasets/999999/")
    answer = as_alice.get("/api/v1/datasets/999999/")

    assert 'href="/help/reference/errors/#not_found"' in page.content.decode()
    assert answer.json()["type"] == "/help/reference/errors/#not_found"
