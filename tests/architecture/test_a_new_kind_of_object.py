"""A new kind of object declares its pages, API and search in few lines; they behave as those of all other kinds."""

from __future__ import annotations

import pytest
from django.db import connection

from aiplatform.lib import search
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, Facts
from aiplatform.objects.viewsets import ObjectViewSet
from tests.architecture.code import ROOT
from tests.conftest import signed_in
from tests.fakes.toys.faces import SOURCE, ToySerializer
from tests.fakes.toys.models import Toy, create

pytestmark = pytest.mark.django_db
MAX_LINES = 150
API = "/api/v1/toys/"


@pytest.fixture(scope="module", autouse=True)
def _table(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        with connection.schema_editor() as editor:
            editor.create_model(Toy)
        yield
        with connection.schema_editor() as editor:
            editor.delete_model(Toy)


@pytest.fixture(autouse=True)
def _site(settings):
    settings.ROOT_URLCONF = "tests.fakes.toys.faces"


@pytest.fixture
def car(alice):
    return create(user=alice, name="Car")


def test_new_kind_of_object_costs_few_lines():
    lines = (ROOT / "tests/fakes/toys/faces.py").read_text().splitlines()

    assert len(lines) <= MAX_LINES


def test_pages_create_show_change_and_delete_an_object(as_alice):
    created = as_alice.post("/toys/new/", {"name": "Car", "wheels": 3, "visibility": "private"})
    toy = Toy.objects.get()
    detail = as_alice.get(created["Location"]).content.decode()
    changed = as_alice.post(f"/toys/{toy.pk}/edit/", {"name": "Bus", "wheels": 6, "visibility": "public"})
    acted = as_alice.post(f"/toys/{toy.pk}/take-off/")
    deleted = as_alice.post(f"/toys/{toy.pk}/delete/", {"confirm": "Bus"}, follow=True)

    assert created["Location"] == changed["Location"] == acted["Location"] == f"/toys/{toy.pk}/"
    assert "<dt>Wheels</dt><dd>3</dd><dt>Visible to</dt><dd>Only me</dd>" in detail
    assert "Toy Bus is deleted." in deleted.content.decode()
    assert not Toy.objects.exists()


def test_action_and_edit_write_what_they_say(as_alice, car):
    as_alice.post(f"/toys/{car.pk}/edit/", {"name": "Bus", "wheels": 6, "visibility": "public"})
    car.refresh_from_db()
    written = (car.name, car.wheels, car.visibility)
    as_alice.post(f"/toys/{car.pk}/take-off/")
    car.refresh_from_db()

    assert (written, car.wheels) == (("Bus", 6, "public"), 0)


def test_form_reports_all_errors_with_what_was_typed(as_alice, car):
    refused = as_alice.post("/toys/new/", {"name": "!", "wheels": -1, "visibility": "private"})
    taken = as_alice.post("/toys/new/", {"name": "Car", "wheels": 1, "visibility": "private"})

    assert (refused.status_code, set(refused.context["form"].errors)) == (422, {"name", "wheels"})
    assert 'value="!"' in refused.content.decode()
    assert (taken.status_code, taken.context["form"].errors["name"]) == (422, ["You already have a toy “Car”."])


def test_delete_requires_the_typed_name(as_alice, car):
    kept = as_alice.post(f"/toys/{car.pk}/delete/", {"confirm": "Cart"})

    assert (kept["Location"], Toy.objects.count()) == (f"/toys/{car.pk}/", 1)


def test_list_filters_sorts_and_gives_htmx_the_table_alone(as_alice, alice, bob):
    for name, user in (("Bike", alice), ("Car", alice), ("Cart", bob)):
        create(user=user, name=name, visibility="public")

    def names(query):
        return [toy.name for toy in as_alice.get(f"/toys/{query}").context["page"]]

    part = as_alice.get("/toys/?q=bike", headers={"HX-Request": "true"}).content.decode()

    assert names("?ordering=name") == ["Bike", "Car", "Cart"]
    assert names("?q=car&mine=1") == ["Car"]
    assert names("?visibility=private") == []
    assert len(names("?visibility=of+iron&ordering=wheels")) == 3  # what an address says wrong filters nothing
    assert ("<html" in part, "Bike" in part, "Car" in part) == (False, True, False)


def test_empty_lists_say_what_to_do_next(as_alice):
    empty, unmatched = (as_alice.get(f"/toys/{query}").content.decode() for query in ("", "?q=zeppelin"))

    assert ("No toys yet." in empty, "New toy" in empty) == (True, True)
    assert ("No toy matches." in unmatched, "No toys yet." in unmatched) == (True, False)


def test_pages_and_api_keep_their_permissions(client, as_bob, anna, alice, as_alice, car):
    public = create(user=alice, name="Bus", visibility="public")
    pages = ["/toys/", "/toys/new/", f"/toys/{car.pk}/", API, f"{API}{car.pk}/"]

    assert [as_bob.get(page).status_code for page in pages] == [200, 200, 404, 200, 404]
    assert [signed_in(anna).get(page).status_code for page in pages] == [403] * 5
    assert [client.get(page).status_code for page in pages] == [302, 302, 302, 401, 401]
    for page in ("edit", "delete", "take-off"):
        assert as_bob.post(f"/toys/{public.pk}/{page}/", {"confirm": "Bus"}).status_code == 404
    assert as_bob.delete(f"{API}{public.pk}/").status_code == 404
    assert as_bob.get(f"/toys/{public.pk}/").context["may_change"] is False
    assert as_alice.get(f"/toys/{public.pk}/take-off/").status_code == 405


def test_api_creates_reads_changes_and_deletes(api):
    created = api.post(API, {"name": "Car"}, format="json")
    route = f"{API}{created.json()['id']}/"
    changed = api.patch(route, {"wheels": 3}, format="json")
    acted = api.post(f"{route}take_off/")

    assert created.status_code == 201
    assert created.json() | {"id": 0, "created_at": ""} == {
        "id": 0, "name": "Car", "owner": "alice", "wheels": 4, "visibility": "private", "created_at": "",
    }  # fmt: skip
    assert (changed.json()["wheels"], changed.json()["name"], acted.json()["wheels"]) == (3, "Car", 0)
    assert api.get(route).json() == acted.json()
    assert (api.delete(route).status_code, api.get(route).status_code) == (204, 404)


def test_api_refuses_what_is_not_writable_and_all_wrong_values_at_once(api, car):
    body = {"name": "!", "wheels": -1, "visibility": "of iron", "owner": "bob", "tail": 1}
    refused, changed = api.post(API, body, format="json"), api.patch(f"{API}{car.pk}/", {"owner": "bob"}, format="json")

    assert (refused.status_code, set(refused.json()["errors"])) == (400, set(body))
    assert (changed.status_code, set(changed.json()["errors"])) == (400, {"owner"})


def test_api_filters_as_the_page_does_and_names_what_it_does_not_know(api, car, bob):
    create(user=bob, name="Cart", visibility="public")

    def names(query):
        return [toy["name"] for toy in api.get(f"{API}?{query}").json()["results"]]

    assert (names("q=car&ordering=name"), names("search=car&mine=1")) == (["Car", "Cart"], ["Car"])
    assert api.get(f"{API}?visibility=iron").json()["detail"] == "visibility must be one of private, public."
    assert api.get(f"{API}?wheels=4").status_code == 400


def test_object_is_found_by_those_who_see_it(car, alice, bob):
    hit = {"kind": "Toy", "icon": "star", "name": "Car", "url": f"/toys/{car.pk}/"}
    with search.SOURCES.temporarily(SOURCE):
        assert search.search(alice, "car") == [hit]
        assert search.search(bob, "car") == []


def test_kind_without_permissions_has_no_routes():
    class Bare(ObjectPages[Toy]):
        model, namespace, facts = Toy, "toys", Facts(Column("Wheels", "row.wheels"))

    with pytest.raises(AttributeError, match="view_permission"):
        Bare.urls()
    with pytest.raises(AttributeError, match="view_permission"):
        type("BareViewSet", (ObjectViewSet,), {"serializer_class": ToySerializer})
