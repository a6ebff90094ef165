"""One mechanism by which processes claim rows: whatever they do and whenever they die, one at most may write."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from aiplatform.lib.claims import ClaimLost, Claims, new_holder
from tests.long_form import examples
from workers.core.models import Lease

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]

TTL = timedelta(seconds=60)
BEGIN = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.moment = BEGIN

    def __call__(self) -> datetime:
        return self.moment

    def wait(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def rules(clock) -> Claims:
    return Claims(ttl=TTL, clock=clock)


@pytest.fixture
def row(rules):
    Lease.objects.create(name="row", renewed_at=BEGIN)
    return Lease.objects.filter(name="row")


def test_claim_take_refuses_a_second_holder(rules, row):
    first = rules.acquire(row)

    assert first.epoch == 1
    assert rules.acquire(row) is None
    assert row.get().holder == first.holder


def test_claim_take_by_the_same_holder_renews_and_keeps_the_epoch(rules, row, clock):
    rules.acquire(row, holder="one")
    clock.wait(50)

    again = rules.acquire(row, holder="one")

    assert (again.epoch, row.get().renewed_at) == (1, clock())


def test_claim_of_a_dead_holder_is_free_after_its_time_and_not_before(rules, row, clock):
    dead = rules.acquire(row)
    clock.wait(60)
    early = rules.acquire(row), rules.free(row).exists(), rules.is_free(row.get())
    clock.wait(0.001)
    free = rules.free(row).exists(), rules.is_free(row.get())
    late = rules.acquire(row)

    assert (early, free) == ((None, False, False), (True, True))
    assert late.epoch == 2
    with pytest.raises(ClaimLost):
        dead.write(name="written")
    assert not dead.release(name="released")
    assert row.get().holder == late.holder


def test_claim_write_renews(rules, row, clock):
    claim = rules.acquire(row)
    for _step in range(5):
        clock.wait(50)
        claim.renew()

    assert rules.acquire(row) is None
    assert row.get().epoch == 1


def test_claim_that_ran_out_stays_with_a_holder_who_is_back_first(rules, row, clock):
    slow = rules.acquire(row)
    clock.wait(500)

    slow.write(watched_since=clock())

    assert rules.acquire(row) is None
    assert row.get().watched_since == clock()


def test_claim_release_lets_the_next_one_in_at_once(rules, row):
    claim = rules.acquire(row)

    assert claim.release(watched_since=BEGIN)
    assert rules.acquire(row).epoch == 2
    with pytest.raises(ClaimLost):
        claim.renew()


def test_claim_delete_is_refused_to_one_who_was_replaced(rules, row, clock):
    slow = rules.acquire(row)
    clock.wait(61)
    claim = rules.acquire(row)

    assert not slow.delete()
    assert row.exists()
    assert claim.delete()
    assert not row.exists()


def test_claim_take_changes_columns_only_with_the_take(rules, row, clock):
    later = BEGIN + timedelta(days=1)
    rules.acquire(row)

    assert rules.acquire(row, watched_since=later) is None
    assert row.get().watched_since != later
    clock.wait(61)
    assert rules.acquire(row, watched_since=later)
    assert row.get().watched_since == later


def test_claim_take_of_no_row_is_none(rules):
    assert rules.acquire(Lease.objects.filter(name="nobody")) is None


def test_claim_holders_are_never_the_same():
    assert len({new_holder() for _ in range(100)}) == 100


#: A claimant may take (under a name that others of its process use as well, or a new one), and any claim that anybody
#: ever got may be used again at any later time: that is a process which stood still and comes back.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.sampled_from(["", "", "one", "two"])),
        st.tuples(st.sampled_from(["write", "renew", "release"]), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.sampled_from([1, 59, 60, 61, 600])),
        st.tuples(st.just("withdraw"), st.none()),
    ),
    max_size=25,
)


@limits(max_examples=examples(150))
@given(steps=STEPS)
def test_claim_writers_agree_with_a_model_of_one_right_that_is_handed_on(steps):
    Lease.objects.filter(name="row").delete()
    Lease.objects.create(name="row", renewed_at=BEGIN)
    row, clock = Lease.objects.filter(name="row"), Clock()
    rules = Claims(ttl=TTL, clock=clock)
    claims, right, seen, epoch, written = [], None, BEGIN, 0, None  # right: (holder, epoch) of who may write

    for number, (act, what) in enumerate(steps):
        if act == "wait":
            clock.wait(what)
        elif act == "withdraw":
            row.update(holder="")
            right = None
        elif act == "take":
            stays = right is not None and what == right[0]
            free = right is None or clock() - seen > TTL
            claim = rules.acquire(row, holder=what)
            assert (claim is not None) == (stays or free)
            if claim is not None:
                epoch += not stays
                right, seen = (claim.holder, epoch), clock()
                assert claim.epoch == epoch
                claims.append(claim)
        elif claims:
            claim = claims[-1 - what % len(claims)]
            mine = right == (claim.holder, claim.epoch)
            stamp = BEGIN + timedelta(days=number)
            if act == "release":
                assert claim.release(watched_since=stamp) == mine
                right = None if mine else right
            else:
                columns = {"watched_since": stamp} if act == "write" else {}
                try:
                    claim.write(**columns)
                except ClaimLost:
                    assert not mine
                else:
                    assert mine
                    seen = clock()
            written = stamp if mine and act != "renew" else written
        found = row.get()
        assert (found.holder, found.epoch) == (right[0] if right else "", epoch)
        assert written is None or found.watched_since == written
