"""Deleting an account: what happens to its things is said first."""

from __future__ import annotations

import pytest

from accounts.models import User
from accounts.services import account_deletion, tokens
from accounts.services.ceiling import FirstAdministrator
from datasets.models import Dataset
from tests.conftest import signed_in
from workers.core.models import Job
from workers.core.states import JobState

pytestmark = pytest.mark.postgres


@pytest.fixture
def things(alice, cluster):
    return (
        Dataset.objects.create(owner=alice, name="cells"),
        Job.objects.create(owner=alice, cluster=cluster, kind="command", name="j"),
    )


def test_account_deletion_page_counts_what_the_account_owns(as_olga, alice, things):
    owns = {kind.key: count for kind, count in as_olga.get(f"/people/{alice.pk}/delete/").context["owns"]}

    assert owns == {"datasets": 1, "jobs": 1}


def test_account_deletion_hands_everything_over_and_stops_the_work(as_olga, alice, bob, things):
    dataset, job = things
    Dataset.objects.create(owner=bob, name="cells")
    sent = {"then": "give", "taker": "bob", "confirm": "alice"}

    answer = as_olga.post(f"/people/{alice.pk}/delete/", sent)

    dataset.refresh_from_db()
    job.refresh_from_db()
    assert answer.status_code == 302
    assert (dataset.owner, dataset.name) == (bob, "cells_alice")
    assert (job.owner, job.state) == (bob, JobState.STOPPED)


def test_account_deletion_signs_out_and_removes_personal_facts(as_olga, alice, as_alice, things):
    User.objects.filter(pk=alice.pk).update(email="a@example.org", phone="1")
    _token, secret = tokens.issue(user=alice, name="laptop")

    as_olga.post(f"/people/{alice.pk}/delete/", {"then": "keep", "confirm": "alice"})

    gone = User.objects.get(pk=alice.pk)
    assert (gone.email, gone.phone, gone.is_active, gone.has_usable_password()) == ("", "", False, False)
    assert not gone.roles.exists()
    assert things[0].owner_id == gone.pk
    assert as_alice.get("/").status_code == 302
    assert as_olga.get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    assert as_olga.get(f"/people/{alice.pk}/").status_code == 404
    assert "alice" not in {p.username for p in as_olga.get("/people/").context["page"].rows}


def test_account_deletion_needs_the_name_and_a_new_owner(as_olga, alice, things):
    for sent in ({"then": "keep", "confirm": "bob"}, {"then": "give", "taker": "", "confirm": "alice"}):
        assert as_olga.post(f"/people/{alice.pk}/delete/", sent).status_code == 422

    alice.refresh_from_db()
    assert alice.is_active


def test_account_deletion_asks_for_no_new_owner_where_nothing_is_owned(as_olga, alice):
    fields = as_olga.get(f"/people/{alice.pk}/delete/").context["form"].fields

    answer = as_olga.post(f"/people/{alice.pk}/delete/", {"confirm": "alice"})

    alice.refresh_from_db()
    assert list(fields) == ["confirm"]
    assert (answer.status_code, alice.is_active) == (302, False)


def test_c06_account_deletion_refuses_the_first_administrator_and_oneself(olga, alice, as_olga):
    User.objects.filter(pk=alice.pk).update(first=True)
    alice.refresh_from_db()

    own = as_olga.post(f"/people/{olga.pk}/delete/", {"then": "keep", "confirm": "olga"})

    assert own.status_code == 422
    assert as_olga.get(f"/people/{alice.pk}/delete/").status_code == 403
    with pytest.raises(FirstAdministrator):
        account_deletion.delete(user=alice, by=olga)


def test_account_deletion_is_for_administrators(alice, bob):
    assert signed_in(bob).post(f"/people/{alice.pk}/delete/", {"then": "keep", "confirm": "alice"}).status_code == 403
