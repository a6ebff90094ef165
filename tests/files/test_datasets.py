"""Datasets of files in a home folder or in a shared one, by page, API and command line."""

from __future__ import annotations

import os

import pytest

from accounts.services import shares
from datasets.files import homes, sharing
from datasets.models import Dataset, Import, Upload
from datasets.services import imports
from tests.conftest import signed_in
from tests.datasets.helpers import zipped
from tests.datasets.pictures import picture, put
from tests.datasets.read_folders import LINE, yolo_pairs

pytestmark = pytest.mark.django_db
ROUTE = "/api/v1/files/dataset/"


@pytest.fixture
def home(alice):
    root = homes.home_of(alice)
    put(root / "set", yolo_pairs(3, i0="0 nan 0.5 0.2 0.2\n" + LINE))
    (root / "set.zip").write_bytes(zipped(yolo_pairs(2)))
    (root / "photo.png").write_bytes(picture())
    os.symlink("/etc/passwd", root / "set" / "images" / "secret.png")
    return root


def ran(answer) -> Import:
    row = Import.objects.latest("pk")
    imports.run(row.pk)
    row.refresh_from_db()
    return row


def test_a_folder_an_archive_and_an_image_of_the_home_become_datasets(api, home):
    found = {}
    for path in ("set", "set.zip", "photo.png"):
        answer = api.post(ROUTE, {"path": path, "name": f"of {path}"}, format="json")
        assert answer.status_code == 202, answer.json()
        version = ran(answer).version
        found[path] = (version.image_count, version.annotation_count)

    assert found == {"set": (3, 3), "set.zip": (2, 2), "photo.png": (1, 0)}
    assert (home / "set" / "images" / "0.png").is_file()  # copied, not taken
    report = Import.objects.get(dataset__name="of set").report
    assert (report["skipped_objects"], report["images"]) == (1, 3)


def test_files_page_creates_a_dataset_of_a_folder(as_alice, home):
    page = as_alice.get("/files/").content.decode()
    assert page.count('action="/files/dataset/"') == 3

    answer = as_alice.post("/files/dataset/", {"path": "set"})

    row = Import.objects.get()
    assert (answer.url, row.dataset.name) == (f"/datasets/{row.dataset_id}/imports/{row.pk}/", "set")


def test_a_shared_folder_becomes_a_dataset_of_its_reader_while_it_is_shared(alice, bob, home):
    row = sharing.prepare(alice, "set")
    place = {"path": "", "shared": row.pk}
    reader = signed_in(bob)
    assert reader.post(ROUTE, place, content_type="application/json").status_code == 404

    shares.share(kind="folder", pk=row.pk, level="view", by=alice, person=bob.username)
    assert reader.post(ROUTE, place, content_type="application/json").status_code == 202
    assert (ran(None).state, Dataset.objects.get().owner) == ("done", bob)


def test_what_is_wrong_with_files_is_reported_at_once(api, alice, home):
    Dataset.objects.create(owner=alice, name="taken")
    (home / "nothing").mkdir()

    both = api.post(ROUTE, {"path": "nothing", "name": "taken"}, format="json").json()
    out = api.post(ROUTE, {"path": "../bob"}, format="json")
    gone = api.post(ROUTE, {"path": "gone"}, format="json")

    assert "name" in both["errors"]
    assert (out.status_code, gone.status_code) == (400, 404)
    assert not Import.objects.exists()
    assert not Upload.objects.exists()


def test_open_folder_offers_to_become_a_dataset(as_alice, home):
    top, folder = (as_alice.get("/files/", {"path": path}).content.decode() for path in ("", "set"))
    (home / "empty").mkdir()
    empty = as_alice.get("/files/", {"path": "empty"}).content.decode()
    answer = as_alice.post("/files/dataset/", {"path": "set"})

    form = '<input type="hidden" name="path" value="set"><button class="btn">'
    assert [form in page for page in (top, folder)] == [False, True]
    assert 'action="/files/dataset/"' not in empty
    row = Import.objects.get()
    assert answer.url == f"/datasets/{row.dataset_id}/imports/{row.pk}/"
