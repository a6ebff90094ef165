"""What a user decides on a report: skip what is wrong, encodings, masks or images, images without annotations."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

from datasets.models import Dataset
from datasets.services import datasets, imports
from tests.datasets.helpers import checked, uploaded, zipped
from tests.datasets.pictures import coco, picture
from tests.datasets.read_folders import LINE, drawn, photo, yolo_pairs
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def cells(alice):
    return make.dataset(alice)


def page_of(row) -> str:
    return f"/datasets/{row.dataset_id}/imports/{row.pk}/"


def test_report_offers_to_skip_what_is_wrong_and_imports_the_rest(as_alice, cells):
    row = checked(cells, zipped(yolo_pairs(12, i0="0 nan 0.5 0.2 0.2\n" + LINE)))

    html = as_alice.get(page_of(row)).content.decode()
    assert "Skip 1 of 13 objects and import the rest" in html
    assert "Skipped: 1 of 13 annotations." in html
    as_alice.post(f"{page_of(row)}commit/")
    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.version.annotation_count) == ("done", 12)


def test_page_api_and_report_give_one_summary(as_alice, api, cells):
    row = checked(cells, zipped(yolo_pairs(2, i0="0 2 3\n") | {"via.json": '{"_via_settings": 1}', "x.jpg": b""}))

    answer = api.get(f"/api/v1{page_of(row)}").json()

    assert answer["summary"] == {
        "images": {"used": 2, "skipped": 1}, "objects": {"used": 1, "skipped": 1, "total": 2},
        "unused_label_files": 1, "problems": 4, "unlabelled": False,
            "undecided": [],
    }  # fmt: skip
    html = as_alice.get(page_of(row)).content.decode()
    assert all(line in html for line in answer["sentence"].split(". ")[1:])


def test_import_without_a_usable_annotation_waits_even_if_it_was_agreed_beforehand(alice, cells):
    data = zipped({"a.png": picture(), "via.json": '{"_via_settings": 1}'})
    row = imports.start(dataset=cells, by=alice, upload_id=uploaded(alice, data).pk, agreed=True)

    imports.run(row.pk)
    imports.sweep()

    row.refresh_from_db()
    assert (row.state, row.report["unlabelled"], row.agreed) == ("reported", True, False)


def test_images_only_asks_for_no_consent_where_annotations_are_not_wanted(alice, cells):
    data = zipped({"a.png": picture(), "via.json": '{"_via_settings": 1}'})
    row = imports.start(dataset=cells, by=alice, upload_id=uploaded(alice, data).pk, agreed=True, wanted="images")

    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.report["unlabelled"], row.report["problem_total"]) == ("done", False, 0)


def test_user_chooses_the_encoding_on_the_report(as_alice, cells):
    row = checked(cells, zipped({"classes.txt": "猫\n狗\n".encode("gb18030"), "a.png": photo(), "a.txt": LINE}))
    assert 'name="encoding"' in as_alice.get(page_of(row)).content.decode()

    assert as_alice.post(f"{page_of(row)}options/", {"encoding": "nonsense"}).status_code == 422
    as_alice.post(f"{page_of(row)}options/", {"encoding": "gb18030"})
    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.report["problem_total"], [item["name"] for item in row.report["classes"]]) == (0, ["猫", "狗"])


def test_user_sees_what_may_be_masks_and_chooses(as_alice, api, bob, client, cells):
    files = {f"one/{n}.png": drawn((255, 0, 0), (0, 255, 0), (0, 0, 255)) for n in "ab"}
    files |= {f"two/{n}.png": drawn((255, 255, 255), (0, 0, 0)) for n in "ab"}
    row = checked(cells, zipped(files), annotated=False)

    html = as_alice.get(page_of(row)).content.decode()
    preview = as_alice.get(f"{page_of(row)}preview.webp?path=two/a.png")

    assert ('name="mask-folder-two"' in html, "preview.webp?path=two%2Fa.png" in html) == (True, True)
    with Image.open(io.BytesIO(preview.content)) as shown:
        assert shown.size == (40, 30)
    assert as_alice.get(f"{page_of(row)}preview.webp?path=one/b.png").status_code == 404  # no example
    assert as_alice.get(f"{page_of(row)}preview.webp?path=../../unpacked.json").status_code == 404
    client.force_login(bob)
    assert client.get(f"{page_of(row)}preview.webp?path=two/a.png").status_code == 404
    as_alice.post(f"{page_of(row)}with-annotations/")
    imports.run(row.pk)
    as_alice.post(f"{page_of(row)}options/", {"mask-folder-two": "masks"})
    imports.run(row.pk)
    row.refresh_from_db()
    assert (row.report["format"], row.report["images"], row.report["unsure_masks"]) == ("masks", 2, {})


def test_api_takes_the_decisions_with_the_import_and_refuses_unknown_ones_together(api, alice, cells):
    where = f"/api/v1/datasets/{cells.pk}/import/"
    upload = uploaded(alice, zipped({"a.json": json.dumps(coco(1)), "0.png": picture()})).pk

    refused = api.post(where, {"upload": upload, "encoding": "rot13", "mask_folders": {"x": "y"}}, format="json")
    taken = api.post(
        where,
        {"upload": upload, "encoding": "big5", "mask_folders": {"x": "masks"}, "allow_unlabelled": True},
        format="json",
    )

    assert refused.status_code == 400
    assert taken.status_code == 202
    assert cells.imports.get().options == {
        "allow_unlabelled": True, "encoding": "big5", "sizes": "", "mask_folders": {"x": "masks"},
    }  # fmt: skip


def test_name_of_a_dataset_whose_data_was_refused_is_free_again(as_alice, alice):
    def create(name: str, data: bytes):
        fields = {"name": name, "intro": "", "annotated": "auto", "source": "upload", "visibility": "private"}
        answer = as_alice.post("/datasets/new/", fields | {"upload_id": uploaded(alice, data).pk, "split": ""})
        assert answer.status_code == 302
        row = Dataset.objects.get(name=name, deleting=False).imports.latest("pk")
        imports.run(row.pk)
        row.refresh_from_db()
        return row

    refused = create("cells", b"no archive")
    assert refused.state == "failed"
    second = create("cells", zipped({"a.png": picture()}))
    assert (second.state, second.dataset_id != refused.dataset_id) == ("reported", True)
    datasets.purge(refused.dataset_id)
    assert list(Dataset.objects.values_list("pk", flat=True)) == [second.dataset_id]


def test_a_discarded_import_takes_its_new_dataset_along_but_none_that_has_data(as_alice, alice, cells):
    upload = uploaded(alice, zipped({"a.png": picture()})).pk
    fresh = datasets.create(owner=alice, name="fresh", intro="", upload_id=upload)
    row = fresh.imports.get()
    imports.run(row.pk)

    assert as_alice.post(f"{page_of(row)}cancel/").url == "/datasets/"
    more = checked(cells, zipped({"a.png": picture()}), annotated=False)
    assert as_alice.post(f"{page_of(more)}cancel/").url == f"/datasets/{cells.pk}/"

    assert list(Dataset.objects.filter(deleting=False)) == [cells]


def test_a_dataset_made_empty_on_purpose_or_with_an_open_import_keeps_its_name(alice):
    datasets.create(owner=alice, name="empty", intro="")
    datasets.create(owner=alice, name="open", intro="", upload_id=uploaded(alice, zipped({"a.png": picture()})).pk)

    for name in ("empty", "open"):
        with pytest.raises(datasets.NameTaken):
            datasets.create(owner=alice, name=name, intro="")
