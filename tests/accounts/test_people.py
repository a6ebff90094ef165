"""People, roles and groups: made, given rights, taken from, by administrators only."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from accounts.access import clusters
from accounts.access.permissions import ANNOTATOR, PRESET_ROLES, SYSTEM_ADMIN, USER, Action
from accounts.models import ApiToken, Role, User, UserGroup
from accounts.services import people, roles, tokens
from aiplatform.lib.errors import DomainError
from tests.conftest import signed_in

pytestmark = pytest.mark.postgres


def role(name):
    return Role.objects.get(name=name)


def test_preset_roles_come_with_the_platform(db):
    found = {row.name: (row.preset, set(row.actions)) for row in Role.objects.all()}

    assert found == {name: (True, {a.value for a in actions}) for name, actions in PRESET_ROLES.items()}


def test_rights_hold_from_the_next_request(alice, as_alice, as_olga):
    assert as_alice.get("/people/").status_code == 403

    as_olga.post(f"/people/{alice.pk}/rights/", {"roles": [role(SYSTEM_ADMIN).pk]})

    assert as_alice.get("/people/").status_code == 200
    assert clusters.ids_for_user(alice) == []  # not chosen: taken out


def test_groups_give_their_roles(alice):
    alice.roles.clear()
    group = roles.create_group(name="labelers", description="d", roles=[role(ANNOTATOR)], members=[alice], by=None)
    alice.forget_actions()
    assert alice.can(Action.ANNOTATION_ANNOTATE)

    roles.delete_group(group=group, by=None)
    alice.forget_actions()

    assert not alice.actions()


def test_c06_preset_roles_cannot_be_changed_or_deleted(as_olga):
    preset = role(USER)

    answers = [
        as_olga.post(f"/people/roles/{preset.pk}/delete/", {"confirm": preset.name}),
        as_olga.delete(f"/api/v1/roles/{preset.pk}/"),
        as_olga.put(f"/api/v1/roles/{preset.pk}/", {"name": "x", "actions": []}, content_type="application/json"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 3
    assert role(USER).actions == preset.actions


def test_c06_people_always_keep_one_administrator(olga, as_olga):
    taken = as_olga.post(f"/people/{olga.pk}/rights/", {"roles": [role(USER).pk]})
    disabled = as_olga.post(f"/people/{olga.pk}/active/", {"active": "0"})

    assert taken.status_code == 422
    assert "At least one administrator is required" in taken.content.decode()
    assert disabled.status_code == 409
    assert User.objects.administrators().get() == olga


def test_c06_administrator_by_group_counts_and_cannot_vanish_with_it(olga, alice):
    group = roles.create_group(name="ops", description="d", roles=[role(SYSTEM_ADMIN)], members=[alice], by=None)
    people.set_rights(user=olga, roles=[role(USER)], groups=[], by=None)

    with pytest.raises(people.LastAdministrator):
        roles.delete_group(group=group, by=None)

    assert UserGroup.objects.filter(name="ops").exists()


@pytest.mark.parametrize("path", ["/people/", "/people/new/", "/people/roles/", "/people/groups/", "/api/v1/users/"])
def test_people_pages_are_for_administrators(path, as_alice, as_anna, as_olga, client):
    assert as_olga.get(path).status_code == 200
    assert as_alice.get(path).status_code == as_anna.get(path).status_code == 403
    assert client.get(path).status_code in {302, 401}


def test_people_list_searches_and_filters(as_olga, alice, bob, anna):
    def shown(query):
        return {person.username for person in as_olga.get(f"/people/?{query}").context["page"].rows}

    assert shown("q=ali") == {"alice"}
    assert shown(f"role={role(ANNOTATOR).pk}") == {"anna"}
    assert shown("role=none") == set()
    assert as_olga.get("/people/?q=%00").status_code == 400


def test_people_list_asks_the_database_a_fixed_number_of_times(
    as_olga, alice, bob, anna, django_assert_max_num_queries
):
    with django_assert_max_num_queries(21):
        as_olga.get("/people/")


@pytest.mark.parametrize(
    "field", ["is_superuser", "is_staff", "groups", "roles", "role", "quota", "uid", "username", "password"]
)
def test_c01_me_api_refuses_by_name_what_is_not_mine_to_set(as_alice, alice, field):
    before = User.objects.filter(pk=alice.pk).values().get()

    answer = as_alice.patch("/api/v1/me/", {field: True, "nickname": "Al"}, content_type="application/json")

    assert answer.status_code == 400
    assert list(answer.json()["errors"]) == [field]
    assert User.objects.filter(pk=alice.pk).values().get() == before


def test_me_api_says_who_and_what(as_alice):
    body = as_alice.get("/api/v1/me/").json()

    assert body["username"] == "alice"
    assert "training.submit" in body["actions"]
    assert "people.manage" not in body["actions"]


def test_me_api_changes_language_zone_and_theme(as_alice, alice):
    wish = {"language": "zh-hans", "time_zone": "Asia/Shanghai", "theme": "dark", "refresh_s": 10}

    answer = as_alice.patch("/api/v1/me/", wish, content_type="application/json")

    alice.refresh_from_db()
    assert answer.status_code == 200
    assert {key: getattr(alice, key) for key in wish} == wish
    assert 'lang="zh-hans"' in as_alice.get("/account/").content.decode()


def test_me_api_refuses_an_unknown_zone(as_alice):
    answer = as_alice.patch("/api/v1/me/", {"time_zone": "Mars/Base"}, content_type="application/json")

    assert list(answer.json()["errors"]) == ["time_zone"]


def test_c07_api_token_for_reading_may_only_read(alice, client):
    _token, secret = tokens.issue(user=alice, name="r", scope=ApiToken.Scope.READ)
    header = {"Authorization": f"Bearer {secret}"}

    read = client.get("/api/v1/me/", headers=header)
    write = client.patch("/api/v1/me/", {"nickname": "x"}, content_type="application/json", headers=header)

    assert (read.status_code, write.status_code) == (200, 403)


def test_c07_api_token_shrinks_with_its_owners_role(alice, client):
    _token, secret = tokens.issue(user=alice, name="w")
    alice.roles.set([role(ANNOTATOR)])

    body = client.get("/api/v1/me/", headers={"Authorization": f"Bearer {secret}"}).json()

    assert "training.submit" not in body["actions"]


def test_j03_api_token_is_shown_once_hashed_at_rest_and_dies_when_revoked(alice, as_alice, client):
    made = as_alice.post("/account/tokens/", {"name": "laptop", "scope": "write", "days": "90"})
    secret = made.context["secret"]
    token = ApiToken.objects.get()
    header = {"Authorization": f"Bearer {secret}"}
    assert secret in made.content.decode()
    assert secret not in as_alice.get("/account/tokens/").content.decode()
    assert secret not in str(ApiToken.objects.values().get())
    assert client.get("/api/v1/me/", headers=header).status_code == 200

    as_alice.post(f"/account/tokens/{token.pk}/revoke/")

    assert client.get("/api/v1/me/", headers=header).status_code == 401


def test_j03_api_token_of_a_stranger_is_not_there(bob, as_alice):
    token, _secret = tokens.issue(user=bob, name="b")

    assert as_alice.post(f"/account/tokens/{token.pk}/revoke/").status_code == 404
    assert ApiToken.objects.exists()


def test_j03_token_api_gives_a_token_for_name_and_password(alice, client):
    ask = {"username": "alice", "password": "correct horse", "name": "cli", "scope": "read"}

    made = client.post("/api/v1/auth/token/", ask, content_type="application/json")

    assert made.status_code == 201
    assert made.json()["token"].startswith("aip_")
    assert ApiToken.objects.get().scope == "read"


def test_users_api_makes_a_person_with_a_password_said_once(as_olga, cluster):
    ask = {"username": "rosa", "nickname": "Rosa", "roles": [role(USER).pk], "clusters": [cluster.pk]}

    made = as_olga.post("/api/v1/users/", ask, content_type="application/json")

    rosa = User.objects.get(username="rosa")
    assert made.status_code == 201
    assert rosa.check_password(made.json()["password"])
    assert "password" not in as_olga.get(f"/api/v1/users/{rosa.pk}/").json()


def test_users_api_changes_and_disables(as_olga, alice):
    wish = {"nickname": "Al", "is_active": False, "roles": []}

    answer = as_olga.patch(f"/api/v1/users/{alice.pk}/", wish, content_type="application/json")

    assert answer.status_code == 200
    assert (answer.json()["nickname"], answer.json()["state"]) == ("Al", "disabled")


def test_groups_api_creates_deletes_and_refuses_a_taken_name(as_olga, alice):
    ask = {"name": "lab", "description": "d", "roles": [role(USER).pk], "members": [alice.pk]}

    made = as_olga.post("/api/v1/groups/", ask, content_type="application/json")

    assert made.status_code == 201
    assert made.json()["members"] == ["alice"]
    assert as_olga.post("/api/v1/groups/", ask, content_type="application/json").status_code == 409
    assert as_olga.delete(f"/api/v1/groups/{made.json()['id']}/").status_code == 204


def test_j02_csrf_token_is_needed_for_every_unsafe_request(alice):
    from django.test import Client

    strict = Client(enforce_csrf_checks=True)
    strict.force_login(alice)

    assert strict.post("/account/", {"nickname": "x"}).status_code == 403
    assert strict.patch("/api/v1/me/", {"nickname": "x"}, content_type="application/json").status_code == 403
    assert strict.post("/api/v1/me/", "{}", content_type="text/plain").status_code in {403, 405, 415}
    assert Client(enforce_csrf_checks=True).post("/login/", {"username": "a", "password": "b"}).status_code == 403


def test_c05_admin_site_is_for_full_administrators_and_gives_no_powers(as_alice, as_olga, alice, client):
    assert client.get("/admin/", follow=False).status_code == 302
    assert as_alice.get("/admin/", follow=True).status_code == 403
    assert as_olga.get("/admin/").status_code == 200
    page = as_olga.get(f"/admin/accounts/user/{alice.pk}/change/")
    assert page.status_code == 200

    as_olga.post(
        f"/admin/accounts/user/{alice.pk}/change/",
        {"nickname": "Al", "is_superuser": "on", "is_staff": "on", "roles": [role(SYSTEM_ADMIN).pk], "_save": "1"},
    )

    alice.refresh_from_db()
    assert not alice.is_superuser
    assert [row.name for row in alice.roles.all()] == [USER]


def test_cluster_switch_stays_among_ones_own(alice, as_alice, cluster):
    from workers.core.models import Membership, VirtualCluster

    mine = VirtualCluster.objects.create(name="lab")
    Membership.objects.create(user=alice, cluster=mine)
    theirs = VirtualCluster.objects.create(name="other")

    good = as_alice.post("/current-cluster/", {"cluster": mine.pk, "next": "/account/"})
    bad = as_alice.post("/current-cluster/", {"cluster": theirs.pk, "next": "//e.vil"})

    assert (good.status_code, good["Location"]) == (302, "/account/")
    assert bad.status_code == 404
    assert alice.memberships.get(is_current=True).cluster == mine


def test_b05_search_finds_only_what_one_may_see(alice, as_alice, as_olga):
    from datasets.models import Dataset

    Dataset.objects.create(name="secret-of-olga", intro="x", owner=User.objects.get(username="olga"))

    assert as_alice.get("/search/?q=secret").json() == {"results": []}
    assert as_alice.get("/search/?q=bob").json() == {"results": []}
    assert [hit["name"] for hit in as_olga.get("/search/?q=alice").json()["results"]] == ["Alice"]


def test_search_finds_what_holds_each_of_its_words(alice, as_olga):
    from datasets.models import Dataset

    for name in ("red cells 2024", "cells of 2024, red", "red mice"):
        Dataset.objects.create(name=name, intro="x", owner=alice)

    def found(words):
        return {hit["name"] for hit in as_olga.get("/search/", {"q": words}).json()["results"]}

    assert found("2024 red") == {"red cells 2024", "cells of 2024, red"}
    assert found("2024 mice") == set()


def test_people_service_refuses_a_name_with_odd_signs(db):
    for name in ("a b", "a/b", "", "x" * 51, "a\nb"):
        with pytest.raises(DomainError):
            people.create(username=name, password="a first phrase", roles=[], by=None)


def test_account_pages_all_open(as_alice, as_anna):
    for path in ("/", "/account/", "/account/password/", "/account/tokens/", "/styleguide/"):
        assert as_alice.get(path).status_code == 200
        assert as_anna.get(path).status_code == 200


def test_person_page_shows_and_corrects(as_olga, alice):
    assert as_olga.get(f"/people/{alice.pk}/").status_code == 200

    as_olga.post(f"/people/{alice.pk}/facts/", {"nickname": "Al", "email": "al@example.org", "phone": "1"})

    alice.refresh_from_db()
    assert (alice.nickname, alice.email) == ("Al", "al@example.org")
    assert signed_in(alice).get(f"/people/{alice.pk}/").status_code == 403


def test_role_that_is_somebodys_only_one_is_not_deleted(alice, bob, olga, as_olga):
    only = roles.create(name="only", actions=["datasets.view"], by=None)
    bob.roles.set([only])
    alice.roles.add(only)
    group = UserGroup.objects.create(name="crew", description="x")
    group.roles.set([only])

    refused = as_olga.post(f"/people/roles/{only.pk}/delete/", {"confirm": "only"})
    for holder in (bob, group):
        holder.roles.add(Role.objects.get(name="User"))
    done = as_olga.post(f"/people/roles/{only.pk}/delete/", {"confirm": "only"})

    assert refused.status_code == 409
    assert unquote(refused["X-Refusal"]) == "“only” is the only role of crew, bob. Assign another role first."
    assert done.status_code == 302
    assert alice.roles.count() == 1
