"""The REST API of datasets: what the command line and scripts use."""

from __future__ import annotations

import json

import pytest
from rest_framework.test import APIClient

from datasets.models import Dataset
from datasets.services import imports
from tests.datasets.helpers import uploaded, zipped
from tests.datasets.pictures import coco, picture
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


def client(user) -> APIClient:
    made = APIClient()
    made.force_authenticate(user)
    return made


def coco_zip(**changes) -> bytes:
    return zipped({"a.json": json.dumps(coco(**changes)), "0.png": picture(), "1.png": picture(colour=(1, 2, 3))})


def test_dataset_api_makes_a_version_of_an_upload_in_four_calls(api, alice):
    made = api.post("/api/v1/datasets/", {"name": "cells"}, format="json").json()
    sent = uploaded(alice, coco_zip())
    row = api.post(f"/api/v1/datasets/{made['id']}/import/", {"upload": sent.pk}, format="json")
    imports.run(row.json()["id"])

    told = api.get(row.headers["Location"]).json()
    versions = api.get(f"/api/v1/datasets/{made['id']}/versions/").json()["results"]
    listed = api.get("/api/v1/datasets/", {"search": "cell"}).json()["results"][0]

    assert (row.status_code, told["state"], told["format"], told["problems"]) == (202, "succeeded", "coco", [])
    assert [(v["number"], v["images"], v["annotations"], v["annotated"]) for v in versions] == [(1, 2, 2, True)]
    assert (listed["latest_version"], listed["images"], listed["annotated"], listed["public"]) == (1, 2, True, False)


def test_dataset_api_dry_run_stops_at_its_report_until_committed(api, alice):
    dataset = make.dataset(alice)
    asked = {"upload": uploaded(alice, coco_zip()).pk, "dry_run": True}
    row = api.post(f"/api/v1/datasets/{dataset.pk}/import/", asked, format="json").json()
    imports.run(row["id"])
    where = f"/api/v1/datasets/{dataset.pk}/imports/{row['id']}/"
    assert (api.get(where).json()["state"], dataset.newest) == ("checked", None)

    api.post(f"{where}commit/")
    imports.run(row["id"])

    assert api.get(where).json()["state"] == "succeeded"
    assert dataset.newest.number == 1


def test_D15_dataset_api_import_without_a_usable_annotation_waits_and_names_the_json_paths(api, alice):
    dataset = make.dataset(alice)
    data = coco_zip(annotations=[{"id": 1, "image_id": 0, "category_id": 99, "bbox": [1, 1, 2, 2]}])
    row = api.post(f"/api/v1/datasets/{dataset.pk}/import/", {"upload": uploaded(alice, data).pk}, format="json").json()

    imports.run(row["id"])

    told = api.get(f"/api/v1/datasets/{dataset.pk}/imports/{row['id']}/").json()
    assert (told["state"], told["summary"]["unlabelled"], dataset.newest) == ("checked", True, None)
    assert told["summary"]["objects"] == {"used": 0, "skipped": 1, "total": 1}
    assert told["problems"][0].startswith("annotations[0].category_id: ")
    where = f"/api/v1/datasets/{dataset.pk}/imports/{row['id']}/commit/"
    refused = api.post(where, {}, format="json")
    assert (refused.status_code, refused.json()["code"]) == (409, "unlabelled")
    assert api.post(where, {"allow_unlabelled": True}, format="json").status_code == 202


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"name": "x" * 26}, 400, "name"),
        ({"name": "ok", "owner": 1}, 400, "owner"),
        ({"name": "taken"}, 409, "name"),
        ({"name": "ok", "server_path": "/etc/"}, 403, "server_path"),
        ({"name": "ok", "upload": "0" * 32}, 404, None),
    ],
)
def test_dataset_api_refuses_wrong_creations_by_field_and_leaves_nothing(api, alice, body, status, field):
    make.dataset(alice, "taken")

    answer = api.post("/api/v1/datasets/", body, format="json")

    assert answer.status_code == status
    assert field is None or field in answer.json()["errors"]
    assert Dataset.objects.count() == 1


def test_dataset_api_lists_images_by_key_with_shapes_and_filters(api, alice):
    version = make.version(make.dataset(alice), images=5)
    where = f"/api/v1/datasets/{version.dataset_id}/versions/{version.pk}/assets/"

    first = api.get(where, {"limit": 2}).json()
    rest = api.get(first["next"]).json()

    assert [a["path"] for a in first["results"] + rest["results"]] == [f"a/{n}.png" for n in range(4)]
    assert first["results"][0]["shapes"] == [[1, "bbox", [2, 3, 12, 11]]]
    assert len(api.get(where, {"class": 2}).json()["results"]) == 2
    assert api.get(where, {"split": "test"}).json()["results"] == []
    assert api.get(where, {"owner__password__startswith": "a"}).status_code == 400
    assert api.get(where, {"class": "1;"}).status_code == 400


def test_B02_dataset_api_hides_a_strangers_things_under_any_route(alice, bob, anna, rf):
    version = make.version(make.dataset(alice))
    asset = version.assets.first()
    row = imports.start(dataset=version.dataset, by=alice, upload_id=uploaded(alice, coco_zip()).pk)
    mine = make.version(make.dataset(bob, "mine"))
    base = f"/api/v1/datasets/{version.dataset_id}/"
    routes = [
        base,
        f"{base}versions/",
        f"{base}versions/{version.pk}/",
        f"{base}versions/{version.pk}/assets/",
        f"{base}imports/{row.pk}/",
        f"/api/v1/versions/{version.pk}/",
        f"/api/v1/versions/{version.pk}/download/",
        f"/api/v1/assets/{asset.pk}/image/",
        f"/api/v1/assets/{asset.pk}/thumbnail/",
        f"/api/v1/datasets/{mine.dataset_id}/versions/{version.pk}/",
        f"/api/v1/datasets/{mine.dataset_id}/versions/{version.pk}/assets/",
        f"/api/v1/uploads/{row.upload_id}/",
    ]

    assert {route: client(bob).get(route).status_code for route in routes} == dict.fromkeys(routes, 404)
    assert {client(anna).get(route).status_code for route in routes} == {403}
    assert {APIClient().get(route).status_code for route in routes} == {401}
    assert client(bob).delete(base).status_code == 404
    assert client(bob).get("/api/v1/datasets/").json()["results"][0]["name"] == "mine"


def test_B08_dataset_api_lets_others_read_but_not_change_a_public_dataset(alice, bob):
    version = make.version(make.dataset(alice, visibility="public"))
    base = f"/api/v1/datasets/{version.dataset_id}/"
    other = client(bob)

    assert other.get(f"{base}versions/{version.pk}/assets/").status_code == 200
    assert other.get(f"/api/v1/assets/{version.assets.first().pk}/image/").status_code == 200
    assert other.patch(base, {"intro": "mine"}, format="json").status_code == 403
    assert other.delete(base).status_code == 403
    assert other.delete(f"/api/v1/versions/{version.pk}/").status_code == 403
    assert other.post(f"{base}import/", {"upload": "0" * 32}, format="json").status_code == 403
    assert other.get(f"{base}imports/").json()["results"] == []
