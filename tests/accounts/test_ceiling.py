"""C05, C06: who administers people gets no further than their own rights."""

from __future__ import annotations

import pytest

from accounts.access.permissions import SYSTEM_ADMIN, USER, Action
from accounts.models import Role, User
from accounts.services import ceiling, links, people, roles
from aiplatform.lib.errors import DomainError, Invalid
from tests.cases import case_table
from tests.conftest import signed_in
from tests.factories import people as cast

pytestmark = pytest.mark.postgres


def role(name):
    return Role.objects.get(name=name)


@pytest.fixture
def clerk(db):
    """May administer people and nothing else."""
    made = cast.user("clerk", role=None)
    made.roles.add(roles.create(name="clerks", actions=["people.manage"], by=None))
    return made


@pytest.fixture
def as_clerk(clerk):
    return signed_in(clerk)


def test_c05_rights_nobody_gives_a_role_beyond_their_own_actions(clerk, as_clerk, alice):
    nobody = cast.user("carol", role=None)
    for name in (SYSTEM_ADMIN, USER):
        page = as_clerk.post(f"/people/{nobody.pk}/rights/", {"roles": [role(name).pk]})
        own = as_clerk.post(f"/people/{clerk.pk}/rights/", {"roles": [role(name).pk]})
        api = as_clerk.patch(f"/api/v1/users/{nobody.pk}/", {"roles": [role(name).pk]}, "application/json")
        made = as_clerk.post(
            "/api/v1/users/", {"username": "dora", "nickname": "D", "roles": [role(name).pk]}, "application/json"
        )
        assert {page.status_code, own.status_code, api.status_code, made.status_code} == {403}
        assert api.json()["code"] == "beyond_you"

    assert not nobody.roles.exists()
    assert not User.objects.filter(username="dora").exists()
    assert User.objects.get(pk=clerk.pk).actions() == {Action.PEOPLE_MANAGE, *ceiling.EVERYONE}


def test_c05_rights_nobody_writes_a_role_beyond_their_own_actions(clerk, as_clerk):
    strong = roles.create(name="strong", actions=["training.submit"], by=None)

    made = as_clerk.post("/api/v1/roles/", {"name": "mine", "actions": ["tasks.manage"]}, "application/json")
    own = as_clerk.put(
        f"/api/v1/roles/{clerk.roles.get().pk}/",
        {"name": "clerks", "actions": ["people.manage", "cluster.manage"]},
        "application/json",
    )
    weakened = as_clerk.put(f"/api/v1/roles/{strong.pk}/", {"name": "strong", "actions": []}, "application/json")
    deleted = as_clerk.delete(f"/api/v1/roles/{strong.pk}/")

    assert made.status_code == own.status_code == weakened.status_code == deleted.status_code == 403
    strong.refresh_from_db()
    assert "training.submit" in strong.actions
    assert "cluster.manage" not in clerk.roles.get().actions


def test_c05_rights_nobody_reaches_more_through_a_group(clerk, as_clerk, olga):
    ops = roles.create_group(name="ops", description="d", roles=[role(SYSTEM_ADMIN)], members=[], by=None)
    sent = {"name": "ops", "description": "d", "roles": [role(SYSTEM_ADMIN).pk], "members": [clerk.pk]}
    mine = {"name": "mine", "description": "d", "roles": [clerk.roles.get().pk], "members": [olga.pk]}

    answers = [
        as_clerk.post("/api/v1/groups/", sent | {"name": "ours"}, "application/json"),
        as_clerk.put(f"/api/v1/groups/{ops.pk}/", sent, "application/json"),
        as_clerk.put(f"/api/v1/groups/{ops.pk}/", sent | {"roles": [clerk.roles.get().pk]}, "application/json"),
        as_clerk.patch(f"/api/v1/users/{clerk.pk}/", {"groups": [ops.pk]}, "application/json"),
        as_clerk.delete(f"/api/v1/groups/{ops.pk}/"),
        as_clerk.post("/api/v1/groups/", mine, "application/json"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 6
    assert not ops.users.exists()


def test_c05_rights_nobody_changes_an_account_that_may_do_more(as_clerk, olga):
    answers = [
        as_clerk.post(f"/people/{olga.pk}/password-link/"),
        as_clerk.post(f"/people/{olga.pk}/rights/", {"roles": []}),
        as_clerk.post(f"/people/{olga.pk}/active/", {"active": "0"}),
        as_clerk.post(f"/people/{olga.pk}/facts/", {"email": "clerk@e.vil"}),
        as_clerk.patch(f"/api/v1/users/{olga.pk}/", {"is_active": False}, "application/json"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 5
    olga.refresh_from_db()
    assert (olga.is_active, olga.email) == (True, "")


def test_c05_rights_protect_a_disabled_administrator_too(clerk, olga, alice):
    people.set_rights(user=alice, roles=[role(SYSTEM_ADMIN)], groups=[], by=None)
    people.set_active(user=olga, active=False, by=alice)
    olga.refresh_from_db()

    for act in (
        lambda: links.issue_password_link(user=olga, by=clerk),
        lambda: people.set_active(user=olga, active=True, by=clerk),
    ):
        with pytest.raises(ceiling.BeyondYou):
            act()


def test_c05_rights_let_people_be_administered_within_ones_own_actions(clerk, as_clerk):
    carol = cast.user("carol", role=None)

    answer = as_clerk.post(f"/people/{carol.pk}/rights/", {"roles": [clerk.roles.get().pk]})

    assert answer.status_code == 302
    assert as_clerk.post(f"/people/{carol.pk}/password-link/").status_code == 200


def test_c05_admin_site_changes_no_account(olga, as_olga, alice):
    page = as_olga.post(f"/admin/accounts/user/{alice.pk}/change/", {"email": "x@e.vil", "is_superuser": "on"})

    assert page.status_code == 403
    alice.refresh_from_db()
    assert (alice.email, alice.is_superuser) == ("", False)


def test_c03_rights_nobody_gives_a_cluster_they_are_not_in(clerk, as_clerk, cluster):
    carol = cast.user("carol", role=None)

    own = as_clerk.patch(f"/api/v1/users/{clerk.pk}/", {"clusters": [cluster.pk]}, "application/json")
    other = as_clerk.patch(f"/api/v1/users/{carol.pk}/", {"clusters": [cluster.pk]}, "application/json")

    assert own.status_code == other.status_code == 403
    assert not carol.memberships.exists()


@pytest.fixture
def first(olga):
    User.objects.filter(pk=olga.pk).update(first=True)
    return User.objects.get(pk=olga.pk)


def test_c06_first_administrator_changes_only_the_password(first, alice):
    people.set_rights(user=alice, roles=[role(SYSTEM_ADMIN)], groups=[], by=first)
    group = roles.create_group(name="lab", description="d", roles=[role(USER)], by=first)
    admin = signed_in(alice)

    answers = [
        admin.patch(f"/api/v1/users/{first.pk}/", {"roles": [role(USER).pk]}, "application/json"),
        admin.patch(f"/api/v1/users/{first.pk}/", {"is_active": False}, "application/json"),
        admin.patch(f"/api/v1/users/{first.pk}/", {"nickname": "Nobody"}, "application/json"),
        admin.patch(f"/api/v1/users/{first.pk}/", {"groups": [group.pk]}, "application/json"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 4
    assert {answer.json()["code"] for answer in answers} == {"first_administrator"}
    assert admin.post(f"/people/{first.pk}/password-link/").status_code == 403


def test_c06_console_link_marks_the_first_administrator(db, client):
    form = {"username": "olga", "password": "a long enough phrase", "again": "a long enough phrase"}

    client.post(links.issue_first_admin_link(), form)

    assert User.objects.get().first


@case_table(
    "name", [".ssh", "-rf", "a..b", "..", "end.", "root", "Root", "postgres", "a/b", "a b", "me"], rollback=True
)
def test_username_is_no_path_option_or_word_of_the_platform(db, name):
    with pytest.raises(Invalid) as refusal:
        people.create(username=name, password="a first phrase", by=None)

    assert refusal.value.blamed == "username"


def test_rights_refusal_says_what_is_missing(clerk):
    with pytest.raises(DomainError) as refusal:
        roles.create(name="mine", actions=["tasks.manage", "people.manage"], by=clerk)

    assert refusal.value.facts == {"lacks": ["tasks.manage"]}
