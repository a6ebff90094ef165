"""Pages of users, groups and roles: lists, details, forms, and the rights that they show."""

from __future__ import annotations

import pytest
from django.test import RequestFactory
from django.utils.timezone import now

from accounts.access.permissions import (
    AI_PLATFORM,
    ANNOTATION_PLATFORM,
    ANNOTATOR,
    EVERYONE,
    SYSTEM_ADMIN,
    USER,
    Action,
    grouped_actions,
)
from accounts.models import Role, User, UserGroup
from accounts.presentation.orders import GROUPS, PEOPLE, ROLES
from accounts.services import roles
from tests.conftest import signed_in
from tests.factories import people as cast

pytestmark = pytest.mark.postgres


def role(name=USER):
    return Role.objects.get(name=name)


def test_new_group_and_new_role_are_one_form_each(as_olga):
    group = as_olga.post("/people/groups/new/", {"name": "lab", "description": "all of it", "roles": [role().pk]})
    bare = as_olga.post("/people/groups/new/", {"name": "lab", "description": "all of it"})
    made = as_olga.post("/people/roles/new/", {"name": "mine", "set": "annotation"})
    taken = as_olga.post("/people/roles/new/", {"name": "mine", "set": "own"})

    assert group.url == f"/people/groups/{UserGroup.objects.get(name='lab').pk}/"
    assert list(UserGroup.objects.get(name="lab").roles.all()) == [role()]
    assert (bare.status_code, set(bare.context["form"].errors)) == (422, {"name", "roles"})
    assert made.url == f"/people/roles/{role('mine').pk}/"
    assert (taken.status_code, set(taken.context["form"].errors)) == (422, {"name", "actions"})


@pytest.mark.parametrize(
    ("chosen", "held"), [("ai", AI_PLATFORM), ("annotation", ANNOTATION_PLATFORM), ("own", {Action.MODELS_VIEW})]
)
def test_new_role_has_the_permissions_of_a_set_or_an_own_choice(as_olga, chosen, held):
    as_olga.post("/people/roles/new/", {"name": "mine", "set": chosen, "actions": ["models.view"]})

    assert role("mine").allows() == set(held) | EVERYONE
    as_olga.post(f"/people/roles/{role('mine').pk}/delete/", {"confirm": "mine"})
    assert not Role.objects.filter(name="mine").exists()


def test_c05_new_role_offers_and_grants_no_more_than_its_creator_has(db):
    clerk = cast.user("clerk", role=None)
    clerk.roles.add(roles.create(name="clerks", actions=["people.manage"], by=None))
    client, path = signed_in(clerk), "/people/roles/new/"

    offered = client.get(path).context["form"].fields
    answer = client.post(path, {"name": "mine", "set": "own", "actions": ["tasks.manage"]})

    assert [value for value, _words in offered["set"].choices] == ["own"]
    groups = [(str(label), [value for value, _words in own]) for label, own in offered["actions"].choices]
    assert groups == [("Admin", ["people.manage"])]
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


def test_every_action_is_in_one_group_and_pages_show_the_groups(as_olga, bob):
    listed = [action for _label, own in grouped_actions(Action) for action in own]
    assert sorted(listed) == sorted(Action)
    for path in (f"/people/roles/{role().pk}/", f"/people/{bob.pk}/", "/people/roles/new/"):
        page = as_olga.get(path).content.decode()
        assert all(f">{label}</" in page for label in ("Data", "Annotation", "Training", "Models", "Deploy")), path


def test_pages_say_that_a_role_starts_no_jobs(as_olga, bob, cluster):
    hint = "This role starts no jobs and needs no cluster."
    pages = (f"/people/{bob.pk}/", f"/clusters/{cluster.pk}/members/")
    clusters = [as_olga.get(path).content.decode() for path in pages]
    bob.roles.set([role(ANNOTATOR)])
    annotator = [as_olga.get(path).content.decode() for path in pages]

    assert [hint in page for page in (*clusters, *annotator)] == [False, False, True, True]


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


def test_empty_lists_of_people_offer_one_action_each(as_olga, alice):
    def content(path):
        return as_olga.get(path).content.decode().split('<div id="', 1)[-1].split("</main>")[0]

    empty, filtered = content("/people/groups/"), content("/people/groups/?q=nobody")
    users, roles_ = content("/people/?q=nobody"), content("/people/roles/")

    assert (empty.count('class="btn'), 'href="/people/groups/new/"' in empty) == (1, True)
    assert (filtered.count('class="btn'), 'href="/people/groups/"' in filtered) == (1, True)
    assert "data-filters" in as_olga.get("/people/groups/?q=nobody").content.decode()
    assert (users.count('class="btn'), 'href="/people/"' in users) == (1, True)
    assert "Annotator" in roles_  # never empty: preset roles stay


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
