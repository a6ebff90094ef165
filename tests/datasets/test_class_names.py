"""Classes that are only numbers in the files are named by people before the import."""

from __future__ import annotations

import json

import pytest

from datasets.services import imports
from tests.datasets.helpers import checked, zipped
from tests.datasets.pictures import coco, picture
from tests.datasets.read_folders import mask_png, two_objects
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def row(alice):
    files = {"images/a.jpg": picture(kind="JPEG"), "masks/a.png": mask_png(two_objects())}
    return checked(make.dataset(alice), zipped(files))


def made(row) -> list[str]:
    imports.run(row.pk)
    row.refresh_from_db()
    kept = json.loads((row.version.path / "annotations.json").read_text())["categories"]
    names = [item["name"] for item in kept]
    assert names == [item["name"] for item in row.version.classes] == [item["name"] for item in row.report["classes"]]
    return names


def test_import_page_takes_names_for_the_values_of_masks(as_alice, row):
    page = f"/datasets/{row.dataset_id}/imports/{row.pk}/"

    form = as_alice.get(page).content.decode()
    twice = as_alice.post(f"{page}commit/", {"class-1": "cell", "class-2": "cell"})
    empty = as_alice.post(f"{page}commit/", {"class-1": " ", "class-2": "kept"})
    sent = as_alice.post(f"{page}commit/", {"class-1": "cell", "class-2": "细胞核"})

    assert 'name="class-1" value="1"' in form
    assert (twice.status_code, "Two classes are named “cell”. Use a different name" in twice.content.decode()) == (
        422,
        True,
    )
    assert (empty.status_code, 'name="class-2" value="kept"' in empty.content.decode()) == (422, True)
    assert sent.status_code == 302
    assert made(row) == ["cell", "细胞核"]


def test_import_api_takes_names_for_some_of_the_classes(api, row):
    commit = f"/api/v1/datasets/{row.dataset_id}/imports/{row.pk}/commit/"

    refused = [api.post(commit, {"classes": names}, format="json") for names in ({"9": "x"}, {"a": "x"}, {"1": "2"})]
    agreed = api.post(commit, {"classes": {"2": "nucleus"}}, format="json")

    assert [answer.status_code for answer in refused] == [400, 400, 400]
    assert agreed.status_code == 202
    assert made(row) == ["1", "nucleus"]


def test_import_without_names_keeps_what_the_report_says(api, row):
    assert api.post(f"/api/v1/datasets/{row.dataset_id}/imports/{row.pk}/commit/").status_code == 202

    assert made(row) == ["1", "2"]


def test_import_of_data_that_names_its_classes_takes_no_names(alice, api, as_alice):
    files = {"a.json": json.dumps(coco()), "0.png": picture(), "1.png": picture(colour=(1, 2, 3))}
    row = checked(make.dataset(alice), zipped(files))
    page = f"/datasets/{row.dataset_id}/imports/{row.pk}/"

    refused = api.post(f"/api/v1{page}commit/", {"classes": {"7": "ring"}}, format="json")

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
    assert 'name="class-7"' not in as_alice.get(page).content.decode()
