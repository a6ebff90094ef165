"""A node's heartbeat does not wait for its looks, and stops where they stand still."""

from datetime import timedelta

import pytest
from django.utils.timezone import now

from tests.factories import work
from workers.core.models import Node
from workers.execution.agent import heartbeat

pytestmark = pytest.mark.django_db


def test_heartbeat_is_sent_until_the_agent_stands_still():
    work.node("n1", boot_id="boot", heartbeat_at=now() - timedelta(hours=1))
    clock = [0.0]
    heart = heartbeat.Heartbeat("n1", lambda: clock[0])

    first = heart.beat()
    clock[0] = heartbeat.STUCK_S + 1
    stuck = heart.beat()
    heart.looked()

    assert (first, stuck, heart.beat()) == (True, False, True)
    assert now() - Node.objects.get().heartbeat_at < timedelta(minutes=1)


def test_heartbeat_ends_for_a_node_removed_or_never_begun():
    work.node("n1", boot_id="boot", state="removed")
    work.node("n2")

    assert [heartbeat.Heartbeat(name).beat() for name in ("n1", "n2", "n3")] == [False, False, False]
