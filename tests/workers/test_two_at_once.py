"""Two connections at the same rows at the same time: each order of who comes first ends well.

The first act is held open in its transaction until the second one waits for it (on PostgreSQL its lock is seen; SQLite
lets one writer in at a time by itself), then it commits.
"""

from __future__ import annotations

import threading
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Sum
from django.utils.timezone import now

from accounts.access.permissions import SYSTEM_ADMIN
from accounts.models import User
from accounts.services import people as people_service
from aiplatform.lib.claims import ClaimLost, Claims
from aiplatform.lib.errors import DomainError, StillInUse
from tests.factories import people, work
from workers.core import leases
from workers.core.models import Allocation, Attempt, Device, Job, Lease, Node
from workers.resources.nodes import lifecycle
from workers.scheduling import placing
from workers.scheduling.loop import LEASE, Replaced, Scheduler

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.postgres]

PATIENCE_S = 60.0


class _Act(threading.Thread):
    """One act on a connection of its own; `outcome` is what it returned or raised."""

    def __init__(self, act, before_commit=lambda: None) -> None:
        super().__init__(daemon=True)
        self.act, self.before_commit = act, before_commit
        self.begun = threading.Event()
        self.outcome: Any = None

    def run(self) -> None:
        try:
            self.begun.set()
            with transaction.atomic():
                self.outcome = self.act()
                self.before_commit()
        except Exception as exc:
            self.outcome = exc
        finally:
            connection.close()


def in_turn(first, second) -> tuple[Any, Any]:
    """What became of `first`, and of `second`, which began while the first had acted and not yet committed."""
    acted, may_commit = threading.Event(), threading.Event()

    def hold() -> None:
        acted.set()
        assert may_commit.wait(PATIENCE_S)

    one = _Act(first, hold)
    two = _Act(second)
    one.start()
    assert acted.wait(PATIENCE_S), one.outcome
    two.start()
    assert two.begun.wait(PATIENCE_S)
    deadline = time.monotonic() + PATIENCE_S
    while connection.vendor == "postgresql" and two.is_alive() and not _somebody_waits():
        assert time.monotonic() < deadline, "the second neither waits nor ends"
    may_commit.set()
    for act in (one, two):
        act.join(PATIENCE_S)
        assert not act.is_alive()
    return one.outcome, two.outcome


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


@pytest.fixture
def node(db):
    return work.node("node1", gpus=1)


@pytest.fixture
def card(node):
    return node.devices.get(kind="gpu")


@pytest.fixture
def waiting(alice, cluster):
    return [work.job(alice, cluster, name=f"job {n}", gpus_per_node=1, kind="command") for n in range(2)]


def place(job, card, shares: int = 8):
    return lambda: placing.place(job.pk, [(card.node_id, [(card.pk, shares)])])


def test_f47_node_removal_waits_for_a_job_that_is_being_placed(node, card, waiting):
    placed, removed = in_turn(place(waiting[0], card), lambda: lifecycle.remove(node))

    assert isinstance(placed, Attempt)
    assert isinstance(removed, StillInUse), removed
    node.refresh_from_db()
    card.refresh_from_db()
    assert (node.state, node.drain, card.health, card.used) == ("live", False, "ok", 8)


def test_f47_placing_lands_no_job_on_a_node_that_is_being_removed(node, card, waiting):
    removed, placed = in_turn(lambda: lifecycle.remove(node), place(waiting[0], card))

    assert isinstance(removed, Node)
    assert isinstance(placed, placing.Late), placed
    waiting[0].refresh_from_db()
    card.refresh_from_db()
    assert (waiting[0].state, waiting[0].attempt_number, card.used) == ("queued", 0, 0)
    assert not Attempt.objects.exists()


def test_f47_placing_gives_the_last_shares_of_a_card_to_one(card, waiting):
    first, second = in_turn(place(waiting[0], card, 5), place(waiting[1], card, 5))

    assert isinstance(first, Attempt)
    assert isinstance(second, placing.Late), second
    card.refresh_from_db()
    held = Allocation.objects.filter(released_at=None).aggregate(sum=Sum("share"))["sum"]
    assert (card.used, held) == (5, 5)
    assert sorted(Job.objects.values_list("state", flat=True)) == ["assigned", "queued"]


def test_f47_placing_places_a_job_once_for_two_at_a_time(card, waiting):
    job = waiting[0]

    first, second = in_turn(place(job, card, 4), place(job, card, 4))

    assert isinstance(first, Attempt)
    assert isinstance(second, placing.Late), second
    card.refresh_from_db()
    assert (Attempt.objects.count(), card.used) == (1, 4)


def test_f47_scheduler_lease_stays_with_the_one_that_writes(node, waiting):
    acting = Scheduler("acting")
    acting.tick()
    Lease.objects.update(renewed_at=now() - 2 * leases.TTL)  # it stood still; now it writes, and another one looks

    wrote, took = in_turn(lambda: leases.holds(LEASE, "acting", 1), lambda: leases.acquire(LEASE, "another"))

    assert (wrote, took) == (True, None)
    assert Lease.objects.get(name=LEASE).holder == "acting"


def test_f47_scheduler_that_was_replaced_places_nothing(node, card, waiting, monkeypatch):
    acting = Scheduler("acting")
    acting.tick()
    Attempt.objects.all().delete()
    Job.objects.filter(pk=waiting[1].pk).delete()
    Job.objects.update(state="queued", attempt_number=0)
    Device.objects.update(used=0)
    Lease.objects.update(renewed_at=now() - leases.TTL - timedelta(seconds=5))
    plans = []
    monkeypatch.setattr(acting, "_apply", plans.append)
    monkeypatch.setattr(acting, "_renewed", acting.clock())  # it believes in its lease
    acting._signature = None
    acting.tick()
    monkeypatch.undo()
    assert plans
    assert plans[0].assignments

    took, wrote = in_turn(lambda: leases.acquire(LEASE, "another"), lambda: acting._apply(plans[0]))

    assert took == 2
    assert isinstance(wrote, Replaced), wrote
    assert not Attempt.objects.exists()
    waiting[0].refresh_from_db()
    assert waiting[0].state == "queued"


def test_claim_take_lets_one_of_two_claimants_in(db):
    rules = Claims(ttl=timedelta(seconds=10))
    row = Lease.objects.filter(pk=Lease.objects.create(name="row").pk)

    first, second = in_turn(lambda: rules.acquire(row), lambda: rules.acquire(row))

    assert (first.epoch, second) == (1, None)
    assert row.get().holder == first.holder


def test_claim_write_and_takeover_never_both_succeed(db):
    rules = Claims(ttl=timedelta(seconds=10))
    row = Lease.objects.filter(pk=Lease.objects.create(name="row").pk)
    slow = rules.acquire(row)
    row.update(renewed_at=now() - timedelta(seconds=11))

    taken, wrote = in_turn(lambda: rules.acquire(row), slow.renew)
    row.update(renewed_at=now() - timedelta(seconds=11))
    renewed, late = in_turn(taken.renew, lambda: rules.acquire(row))

    assert taken.epoch == 2
    assert isinstance(wrote, ClaimLost), wrote
    assert (renewed, late) == (None, None)


def test_administrators_who_take_each_others_rights_at_once_leave_one(db):
    olga, peter = (people.user(name, role=SYSTEM_ADMIN) for name in ("olga", "peter"))

    def demote(whom, by):
        return lambda: people_service.set_rights(user=whom, roles=[], groups=[], by=by)

    first, second = in_turn(demote(peter, olga), demote(olga, peter))

    assert first is None
    assert isinstance(second, DomainError), second  # on SQLite the whole second act comes after the first
    assert list(User.objects.administrators()) == [olga]
