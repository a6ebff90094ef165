"""The field and the search that name people."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError

from accounts.forms.picking import PeopleField
from accounts.models import User
from accounts.services import roles
from datasets.models import Dataset
from tests.factories import work
from tests.factories.people import user
from workers.core.models import VirtualCluster
from workers.resources.clusters import members


@pytest.fixture
def rosas(db):
    """Two people of one nickname."""
    made = [user("rosa.w"), user("rosa.m")]
    User.objects.filter(pk__in=[person.pk for person in made]).update(nickname="Rosa")
    return list(User.objects.filter(nickname="Rosa").order_by("pk"))


@pytest.fixture
def lab(db):
    return VirtualCluster.objects.create(name="lab")


def found(client, words):
    return [row["username"] for row in client.get("/people/find/", {"q": words}).json()["people"]]


def test_full_name_tells_people_of_one_nickname_apart(rosas):
    plain = [User(username="alice", nickname="Alice"), User(username="bob")]

    assert [person.get_full_name() for person in rosas] == ["Rosa (rosa.w)", "Rosa (rosa.m)"]
    assert [person.get_full_name() for person in plain] == ["Alice", "bob"]


def test_people_search_finds_everybody_for_administrators_a_dozen_at_a_time(
    as_olga, rosas, django_assert_max_num_queries
):
    User.objects.bulk_create(User(username=f"crowd{n:02}", nickname="Many") for n in range(20))

    with django_assert_max_num_queries(8):
        many = as_olga.get("/people/find/?q=many").json()

    assert [found(as_olga, words) for words in ("rosa", "rosa .w", " ")] == [["rosa.m", "rosa.w"], ["rosa.w"], []]
    assert (len(many["people"]), many["more"]) == (12, True)
    assert set(many["people"][0]) == {"username", "nickname"}


def test_people_search_shows_others_who_shares_a_group_or_a_cluster_with_them(as_alice, alice, rosas, lab):
    roles.create_group(name="team", description="d", roles=list(alice.roles.all()), members=[alice, rosas[0]], by=None)
    before = found(as_alice, "rosa")
    members.add(lab, [alice, rosas[1]])
    both = found(as_alice, "rosa")
    User.objects.filter(pk=rosas[1].pk).update(is_active=False)

    assert (before, both, found(as_alice, "rosa"), found(as_alice, "olga")) == (
        ["rosa.w"],
        ["rosa.m", "rosa.w"],
        ["rosa.w"],
        [],
    )


def test_people_search_shows_everybody_to_who_is_in_charge_of_a_cluster(as_alice, alice, rosas, lab):
    members.add(lab, [alice])
    members.set_administrator(lab, alice, on=True)

    assert found(as_alice, "rosa") == ["rosa.m", "rosa.w"]


def test_people_field_takes_a_hundred_names_in_any_spelling_once_each(db, django_assert_num_queries):
    User.objects.bulk_create(User(username=f"p{n:03}") for n in range(100))
    field = PeopleField(among=User.objects.all())

    with django_assert_num_queries(1):
        named = field.clean("\n".join(f"P{n:03}," for n in range(100)) + " p000；p001")

    assert [person.username for person in named] == [f"p{n:03}" for n in range(100)]


def test_people_field_names_all_who_do_not_exist(rosas):
    field = PeopleField(among=User.objects.all())

    with pytest.raises(ValidationError, match="No user is named “ros”, “w”"):
        field.clean("ros w rosa.w")
    with pytest.raises(ValidationError, match=r"Enter only one user."):
        PeopleField(among=User.objects.all(), max_count=1).clean("rosa.w rosa.m")


def test_cluster_takes_pasted_usernames_and_keeps_them_when_one_is_wrong(as_olga, rosas, lab):
    url = f"/clusters/{lab.pk}/members/add/"

    refused = as_olga.post(url, {"people": "rosa.w, rosa.x"})
    as_olga.post(url, {"people": "rosa.w, rosa.m"})

    assert refused.status_code == 422
    assert "No user is named “rosa.x”." in refused.content.decode()
    assert "rosa.w, rosa.x" in refused.content.decode()
    assert set(lab.members.all()) == set(rosas)


def test_share_page_shares_with_several_people_or_with_none(as_alice, alice, rosas):
    dataset = Dataset.objects.create(owner=alice, name="cells", intro="of blood")
    url = f"/share/dataset/{dataset.pk}/"

    refused = as_alice.post(url, {"person": "rosa.w alice", "level": "use"})
    seen = [Dataset.objects.visible_to(person).exists() for person in rosas]
    as_alice.post(url, {"person": "rosa.w rosa.m", "level": "use"})

    assert (refused.status_code, seen) == (422, [False, False])
    assert all(Dataset.objects.visible_to(person).exists() for person in rosas)


def test_pages_tell_owners_of_one_nickname_apart(as_olga, rosas, lab):
    for person in rosas:
        work.job(person, lab)

    for url in ("/tasks/", "/queue/", f"/clusters/{lab.pk}/"):
        page = as_olga.get(url).content.decode()
        assert "Rosa (rosa.w)" in page, url
        assert "Rosa (rosa.m)" in page, url
