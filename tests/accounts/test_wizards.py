"""Accounts, groups and roles made step by step; nothing is lost on the way back."""

from __future__ import annotations

import re

import pytest
from django.test import RequestFactory
from django.utils.timezone import now

from accounts.access import clusters
from accounts.access.permissions import AI_PLATFORM, ANNOTATION_PLATFORM, EVERYONE, SYSTEM_ADMIN, USER, Action
from accounts.models import Role, User, UserGroup
from accounts.presentation.orders import GROUPS, PEOPLE, ROLES
from accounts.services import roles
from tests.conftest import signed_in
from tests.factories import people as cast

pytestmark = pytest.mark.postgres
NEW = "/people/new/"


def role(name=USER):
    return Role.objects.get(name=name)


def fields(page) -> dict[str, list[str]]:
    """What a browser would send back: hidden, text and ticked fields of the page."""
    sent: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", page.content.decode()):
        of = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        if "name" in of and (of.get("type") not in ("radio", "checkbox") or " checked" in tag):
            sent.setdefault(of["name"], []).append(of.get("value", ""))
    return {name: values for name, values in sent.items() if name not in ("csrfmiddlewaretoken", "q")}


def press(client, page, go, path=NEW, **typed):
    return client.post(path, fields(page) | {"go": go} | typed)


def test_accounts_wizard_makes_accounts_with_passwords_shown_once(as_olga, cluster):
    who = press(as_olga, as_olga.get(NEW), "more", **{"p0-username": "rosa", "p0-nickname": "Rosa"})
    rights = press(as_olga, who, "next", **{"p1-username": "tom", "p1-nickname": "Tom", "p1-email": "t@example.org"})
    confirm = press(as_olga, rights, "next", **{"r-roles": [role().pk], "r-clusters": [cluster.pk]})
    given = fields(confirm)
    made = press(as_olga, confirm, "done", **{"w1-password": "my own first phrase"})

    rosa, tom = User.objects.get(username="rosa"), User.objects.get(username="tom")
    assert rosa.check_password(given["w0-password"][0])
    assert tom.check_password("my own first phrase")
    assert given["w0-password"][0] in made.content.decode()
    assert rosa.must_change_password
    assert rosa.can(Action.TRAINING_SUBMIT)
    assert tom.email == "t@example.org"
    assert clusters.ids_for_user(rosa) == clusters.ids_for_user(tom) == [cluster.pk]


def test_accounts_wizard_loses_nothing_on_the_way_back(as_olga):
    rights = press(as_olga, as_olga.get(NEW), "next", **{"p0-username": "rosa", "p0-nickname": "Rosa"})
    confirm = press(as_olga, rights, "next", **{"r-roles": [role().pk]})
    first = fields(confirm)["w0-password"]

    back = press(as_olga, press(as_olga, confirm, "back"), "back")
    again = press(as_olga, press(as_olga, back, "next"), "next")

    assert fields(back)["p0-username"] == ["rosa"]
    assert fields(back)["r-roles"] == [str(role().pk)]
    assert fields(again)["w0-password"] == first


def test_accounts_wizard_checks_each_step_when_it_is_left(as_olga, alice):
    who = press(as_olga, as_olga.get(NEW), "next", **{"p0-username": "..", "p0-nickname": "x"})
    taken = press(as_olga, as_olga.get(NEW), "next", **{"p0-username": "ALICE", "p0-nickname": "x"})
    rights = press(as_olga, as_olga.get(NEW), "next", **{"p0-username": "tom", "p0-nickname": "x"})
    without = press(as_olga, rights, "next")
    confirm = press(as_olga, rights, "next", **{"r-roles": [role().pk]})
    cast.user("tom")
    meanwhile = press(as_olga, confirm, "done")

    assert (who.status_code, rights.status_code, without.status_code) == (422, 200, 422)
    assert "Choose" in without.content.decode() or "required" in without.content.decode()
    assert (taken.status_code, meanwhile.status_code) == (422, 422)
    assert taken.context["wizard"].forms[0].errors["username"] == ["The name “ALICE” is already in use."]
    assert meanwhile.context["wizard"].forms[0].errors["username"] == ["The name “tom” is already in use."]


def test_accounts_wizard_makes_all_or_none_of_several(as_olga):
    page = press(as_olga, as_olga.get(NEW), "more", **{"p0-username": "rosa", "p0-nickname": "R"})
    page = press(as_olga, page, "next", **{"p1-username": "tom", "p1-nickname": "T"})
    page = press(as_olga, page, "next", **{"r-roles": [role().pk]})
    cast.user("tom")

    assert press(as_olga, page, "done").status_code == 422
    assert not User.objects.filter(username="rosa").exists()


def test_accounts_wizard_takes_ten_at_most_and_a_row_can_be_left_out(as_olga):
    page = as_olga.get(NEW)
    for n in range(12):
        page = press(as_olga, page, "more", **{f"p{min(n, 9)}-username": f"name{n}"})
    assert page.context["count"] == 10

    page = press(as_olga, page, "drop-0")

    assert page.context["count"] == 9
    assert fields(page)["p0-username"] == ["name1"]


def test_group_wizard_makes_a_group_in_three_steps(as_olga):
    path = "/people/groups/new/"
    page = press(as_olga, as_olga.get(path), "next", path, **{"f-name": "lab", "f-description": "all of the lab"})
    bare = press(as_olga, page, "next", path)
    page = press(as_olga, page, "next", path, **{"r-roles": [role().pk]})
    press(as_olga, page, "done", path)

    assert bare.status_code == 422
    assert list(UserGroup.objects.get(name="lab").roles.all()) == [role()]


@pytest.mark.parametrize(
    ("chosen", "held"), [("ai", AI_PLATFORM), ("annotation", ANNOTATION_PLATFORM), ("own", {Action.MODELS_VIEW})]
)
def test_role_wizard_makes_a_role_from_a_set_or_own_choice(as_olga, chosen, held):
    path = "/people/roles/new/"
    page = press(as_olga, as_olga.get(path), "next", path, **{"n-name": "mine"})
    page = press(as_olga, page, "next", path, **{"d-description": "d"})
    press(as_olga, page, "done", path, **{"p-set": chosen, "p-actions": ["models.view"]})

    made = role("mine")
    assert made.allows() == set(held) | EVERYONE
    assert Action.PEOPLE_MANAGE not in made.allows()

    as_olga.post(f"/people/roles/{made.pk}/delete/", {"confirm": made.name})
    assert not Role.objects.filter(name="mine").exists()


def test_c05_wizards_offer_and_give_no_more_than_the_maker_has(db):
    clerk = cast.user("clerk", role=None)
    clerk.roles.add(roles.create(name="clerks", actions=["people.manage"], by=None))
    client, path = signed_in(clerk), "/people/roles/new/"
    page = press(client, client.get(path), "next", path, **{"n-name": "mine"})
    page = press(client, page, "next", path, **{"d-description": "d"})

    offered = page.context["wizard"].forms[0].fields
    answer = press(client, page, "done", path, **{"p-set": "own", "p-actions": ["tasks.manage"]})

    assert [value for value, _words in offered["set"].choices] == ["own"]
    assert [value for value, _words in offered["actions"].choices] == ["people.manage"]
    assert answer.status_code == 422
    assert not Role.objects.filter(name="mine").exists()


def test_group_page_adds_and_removes_people_by_name(as_olga, alice, bob):
    lab = roles.create_group(name="lab", description="d", roles=[role()], by=None)

    as_olga.post(f"/people/groups/{lab.pk}/join/", {"people": "alice, bob"})
    unknown = as_olga.post(f"/people/groups/{lab.pk}/join/", {"people": "nobody"})
    as_olga.post(f"/people/groups/{lab.pk}/leave/{bob.pk}/")

    assert list(lab.users.all()) == [alice]
    assert "No user is named “nobody”." in unknown.content.decode()


def test_role_page_gives_a_role_to_people_and_groups(as_olga, alice, bob):
    viewer = roles.create(name="viewer", actions=["models.view"], by=None)
    lab = roles.create_group(name="lab", description="d", roles=[role()], members=[bob], by=None)

    as_olga.post(f"/people/roles/{viewer.pk}/give/", {"people": "alice"})
    as_olga.post(f"/people/roles/{viewer.pk}/groups/", {"groups": [lab.pk]})
    assert list(viewer.users.all()) == [alice]
    assert list(viewer.user_groups.all()) == [lab]

    as_olga.post(f"/people/roles/{viewer.pk}/take/{alice.pk}/")
    assert not viewer.users.exists()


def test_person_page_says_where_each_right_comes_from(as_olga, bob):
    viewer = roles.create(name="viewer", actions=["models.view"], by=None)
    roles.create_group(name="lab", description="d", roles=[viewer], members=[bob], by=None)

    rights = {right.action: right.sources for right in as_olga.get(f"/people/{bob.pk}/").context["effective"]}

    assert rights[Action.MODELS_VIEW] == ["User", "viewer through group lab"]
    assert rights[Action.TRAINING_VIEW] == ["User"]


def test_url_of_the_former_console_leads_to_the_users(as_olga, as_alice):
    assert as_olga.get("/people/console/").url == "/people/"
    assert as_alice.get("/people/console/").status_code == 403


def test_people_list_sorts_filters_and_exports(as_olga, alice, bob):
    User.objects.filter(pk=bob.pk).update(is_active=False, nickname="=cmd()")
    lab = roles.create_group(name="lab", description="d", roles=[role()], members=[alice], by=None)

    def shown(query):
        return [person.username for person in as_olga.get(f"/people/?{query}").context["page"].rows]

    assert shown("ordering=username") == ["alice", "bob", "olga"]
    assert shown("ordering=-seen")[0] == "olga"
    assert shown("state=disabled") == ["bob"]
    assert shown(f"group={lab.pk}") == ["alice"]
    table = as_olga.get("/people/export/?ordering=username").content.decode()
    assert "alice,Alice" in table
    assert "bob,'=cmd()" in table


@pytest.mark.parametrize("word", PEOPLE.words)
def test_people_list_reads_in_every_order_over_pages_with_people_who_never_signed_in(as_olga, alice, bob, word):
    User.objects.exclude(pk=bob.pk).update(last_login=now())
    User.objects.filter(pk=bob.pk).update(last_login=None, email="")

    page = PEOPLE.page(RequestFactory().get(f"/people/?ordering={word}"), User.objects.all(), size=1)
    found = [row.pk for row in page]
    while page.next_url:
        page = PEOPLE.page(RequestFactory().get(f"/people/{page.next_url}"), User.objects.all(), size=1)
        found += [row.pk for row in page]

    assert found == [row.pk for row in as_olga.get(f"/people/?ordering={word}").context["page"]]
    assert sorted(found) == sorted(User.objects.values_list("pk", flat=True))
    assert (found[-1 if word == "-seen" else 0] == bob.pk) or "seen" not in word


def test_role_list_sorts_by_its_heads_and_answers_htmx_with_the_table_alone(as_olga, alice, bob):
    for name, people in (("viewer", [alice, bob]), ("Guest", [])):
        made = roles.create(name=name, description="d", actions=["models.view"], by=None)
        roles.set_holders(role=made, users=people, groups=[], by=None)

    def shown(query):
        names = [one.name for one in as_olga.get(f"/people/roles/?{query}").context["page"]]
        return [name for name in names if name in {"viewer", "Guest"}]

    assert (shown(""), shown("ordering=-name"), shown("ordering=-people")) == (
        ["Guest", "viewer"], ["viewer", "Guest"], ["viewer", "Guest"]
    )  # fmt: skip
    assert [one.preset for one in as_olga.get("/people/roles/").context["page"]] == [True] * 3 + [False] * 2
    assert all(len(shown(f"ordering={word}")) == 2 for word in ROLES.words)
    whole = as_olga.get("/people/roles/?ordering=-name").content.decode()
    part = as_olga.get("/people/roles/?ordering=-name", headers={"HX-Request": "true"}).content.decode()
    assert '<th scope="col" aria-sort="descending"><a href="?ordering=name" data-order="name"' in whole
    assert "viewer" in part
    assert "</html>" not in part


def test_group_list_finds_by_name_and_sorts_by_its_heads(as_olga, alice, bob):
    roles.create_group(name="lab", description="Microscopes", roles=[role()], members=[alice, bob], by=None)
    roles.create_group(name="Guests", description="d", roles=[role()], members=[], by=None)

    def shown(query):
        return [group.name for group in as_olga.get(f"/people/groups/?{query}").context["page"]]

    assert shown("") == ["Guests", "lab"]
    assert shown("ordering=-people") == ["lab", "Guests"]
    assert shown("ordering=-made") == ["Guests", "lab"]
    assert shown("q=micro") == ["lab"]
    assert all(len(shown(f"ordering={word}")) == 2 for word in GROUPS.words)
    assert "No group matches." in as_olga.get("/people/groups/?q=nobody").content.decode()


def test_new_people_wizard_gives_some_their_own_roles_and_says_which_cluster_they_join(as_olga, cluster):
    path = "/people/new/"
    viewer = roles.create(name="viewer", actions=["models.view"], by=None)
    usual = Role.objects.get(name=USER)
    who = {"count": "2", "p0-username": "ada", "p0-nickname": "Ada", "p1-username": "bea", "p1-nickname": "Bea"}
    first = as_olga.post(path, {"at": "0", "go": "next", **who})
    chosen = {"r-roles": [usual.pk], "r-clusters": [cluster.pk], "o1-roles": [viewer.pk]}
    last = as_olga.post(path, {"at": "1", "go": "next", **who, **chosen})
    words = {f"w{n}-password": "a long enough phrase of words" for n in range(2)}

    as_olga.post(path, {"at": "2", "go": "done", **who, **chosen, **words})

    assert "Set roles per user" in first.content.decode()
    assert last.context["joins"] == ["default"]
    assert '<span class="tag">default</span>' in last.content.decode()
    made = {name: [role.name for role in User.objects.get(username=name).roles.all()] for name in ("ada", "bea")}
    assert made == {"ada": [USER], "bea": ["viewer"]}


def test_page_of_the_first_administrator_offers_nothing_that_is_refused(as_olga, olga, alice):
    clerk = cast.user("clerk", role=SYSTEM_ADMIN)
    User.objects.filter(pk=olga.pk).update(first=True)

    theirs = signed_in(clerk).get(f"/people/{olga.pk}/").content.decode()
    own = as_olga.get(f"/people/{olga.pk}/").content.decode()

    for act in ("rights/", "facts/", "active/", "password-link/", "delete/"):
        assert f"/people/{olga.pk}/{act}" not in theirs.replace("disable-person", ""), act
    assert f"/people/{olga.pk}/facts/" in own
    assert f"/people/{olga.pk}/rights/" not in own
    assert "This is the first administrator: the account keeps its" in theirs


def test_lists_of_roles_and_groups_have_their_acts(as_olga, alice):
    viewer = roles.create(name="viewer", actions=["models.view"], by=None)
    lab = roles.create_group(name="lab", description="d", roles=[viewer], by=None)

    in_roles = as_olga.get("/people/roles/").content.decode()
    in_groups = as_olga.get("/people/groups/").content.decode()
    as_olga.post(f"/people/groups/{lab.pk}/delete/", {"confirm": "lab"})

    assert f'id="delete-role-{viewer.pk}"' in in_roles
    assert in_roles.count('<dialog class="dialog" id="delete-') == 1
    assert f'id="delete-group-{lab.pk}"' in in_groups
    assert not UserGroup.objects.exists()
