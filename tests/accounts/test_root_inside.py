"""Root inside: allowed by an administrator, switched on by the person, in the trail."""

import pytest

from accounts.models import AuditEntry, User
from accounts.services import root_inside
from aiplatform.lib.errors import NotAllowed

pytestmark = pytest.mark.django_db
SETTINGS = {"refresh_s": 5, "language": "", "theme": "", "time_zone": ""}


def verbs(person):
    rows = AuditEntry.objects.filter(target_id=str(person.pk), verb__startswith="root_")
    return list(rows.values_list("verb", flat=True))


def test_settings_hide_root_inside_from_who_may_not(as_alice, alice):
    page = as_alice.get("/account/").content.decode()
    as_alice.post("/account/", SETTINGS | {"root_inside": "on"})

    assert "root_inside" not in page
    assert not User.objects.get(pk=alice.pk).root_inside


def test_api_refuses_root_inside_to_who_may_not(as_alice, alice):
    answer = as_alice.patch("/api/v1/me/", {"root_inside": True}, "application/json")

    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    assert not User.objects.get(pk=alice.pk).root_inside


def test_root_inside_is_allowed_on_the_people_page_and_switched_on_in_settings(as_olga, as_alice, alice):
    as_olga.post(f"/people/{alice.pk}/root/", {"allowed": "1"})
    shown = as_alice.get("/account/").content.decode()
    as_alice.post("/account/", SETTINGS | {"root_inside": "on"})

    assert 'name="root_inside"' in shown
    assert User.objects.get(pk=alice.pk).uses_root
    assert sorted(verbs(alice)) == ["root_allowed", "root_switched_on"]


def test_root_inside_taken_back_is_switched_off_as_well(as_olga, as_alice, alice):
    as_olga.patch(f"/api/v1/users/{alice.pk}/", {"root_allowed": True}, "application/json")
    mine = as_alice.patch("/api/v1/me/", {"root_inside": True}, "application/json")
    taken = as_olga.patch(f"/api/v1/users/{alice.pk}/", {"root_allowed": False}, "application/json")

    person = User.objects.get(pk=alice.pk)
    assert (mine.json()["root_allowed"], mine.json()["root_inside"]) == (True, True)
    assert taken.json()["root_allowed"] is False
    assert (person.root_allowed, person.root_inside) == (False, False)
    assert verbs(alice).count("root_revoked") == 1


def test_root_inside_is_allowed_by_the_act_of_the_admin_site(alice, bob, olga):
    from tests.conftest import signed_in

    User.objects.filter(pk=olga.pk).update(is_superuser=True, is_staff=True)
    operator = signed_in(User.objects.get(pk=olga.pk))
    chosen = {"action": "allow_root", "_selected_action": [alice.pk, bob.pk]}
    answer = operator.post("/admin/accounts/user/", chosen)

    assert answer.status_code == 302
    assert set(User.objects.filter(root_allowed=True)) == {alice, bob}


def test_nobody_allows_root_inside_to_who_may_do_more(alice, olga):
    with pytest.raises(NotAllowed):
        root_inside.allow(olga, allowed=True, by=alice)
