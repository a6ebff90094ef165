"""Data comes in by a report first and a version afterwards, whatever dies on the way."""

from __future__ import annotations

import json

import pytest
from django.utils.timezone import now
from PIL import Image

from aiplatform.lib.claims import Claim, ClaimLost, new_holder
from datasets.models import DatasetVersion, Import, Upload
from datasets.services import checking, committing, imports, plans, unpacking, versions
from datasets.services.claims import CLAIMS, TTL, ImportClaim
from datasets.storage import image_files
from tests import public_data
from tests.datasets.helpers import checked, imported, uploaded, zipped, zipped_folder
from tests.datasets.pictures import coco, picture, voc_xml
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


@pytest.fixture
def cells(alice):
    return make.dataset(alice)


def small_coco() -> bytes:
    return zipped({"a.json": json.dumps(coco()), "images/0.png": picture(), "images/1.png": picture(colour=(1, 2, 3))})


def test_dataset_import_reports_the_two_boxes_of_bccd(cells):
    row = imported(cells, zipped_folder(public_data.need("bccd")))

    report, version = row.report, row.version
    told = [problem["message"]["facts"]["image"] for problem in report["problems"]]
    assert (row.state, row.format, report["annotations"], report["problem_counts"]) == (
        "done",
        "voc",
        4886,
        {"degenerate_box": 2},
    )
    assert ["BloodImage_00338" in told[0], "BloodImage_00343" in told[1]] == [True, True]
    assert (version.image_count, version.annotation_count, version.splits) == (
        364,
        4886,
        {"train": 205, "val": 87, "test": 72},
    )
    assert (version.task, version.annotated, version.is_ready) == ("detection", True, True)
    assert not row.folder.exists()
    assert not Upload.objects.exists()


def test_dataset_import_gives_nuts_back_as_they_went_in(cells):
    nuts = public_data.need("nuts", "coco")
    stored = json.loads((nuts / "trainval.json").read_text())

    version = imported(cells, zipped_folder(nuts)).version

    kept = json.loads((version.path / "annotations.json").read_text())
    assert kept["categories"] == [
        {"id": c["id"], "name": c["name"], "supercategory": c["supercategory"]} for c in stored["categories"]
    ]
    assert [a["segmentation"] for a in kept["annotations"]] == [
        a["segmentation"] for image in stored["images"] for a in stored["annotations"] if a["image_id"] == image["id"]
    ]
    assert sorted(i["file_name"] for i in kept["images"]) == sorted(i["file_name"] for i in stored["images"])


def test_dataset_import_turns_class_folders_into_labels_and_splits(cells):
    files = {
        f"{s}/{c}/{n}.png": picture(colour=(n, 9, 9))
        for s in ("train", "test")
        for c in ("cat", "dog")
        for n in range(3)
    }

    version = imported(cells, zipped(files)).version

    assert (version.task, version.splits, [c["name"] for c in version.classes]) == (
        "classification",
        {"train": 6, "test": 6},
        ["cat", "dog"],
    )
    assert version.assets.get(path="train/dog/2.png").label == 1
    assert not (version.path / "annotations.json").exists()


def test_dataset_import_makes_nothing_before_somebody_agrees(cells):
    row = checked(cells, small_coco())

    assert (row.state, row.report["images"], row.report["annotations"]) == ("reported", 2, 2)
    assert not DatasetVersion.objects.exists()
    assert cells.newest is None


def test_dataset_import_takes_images_only_until_annotations_are_requested(cells):
    row = checked(cells, small_coco(), annotated=False)
    assert (row.report["format"], row.report["found"], row.report["annotations"]) == ("images", "coco", 0)

    imports.recheck(row, annotated=True)
    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.report["format"], row.report["annotations"]) == ("reported", "coco", 2)


def test_D12_dataset_import_names_bad_images_and_takes_the_rest(cells):
    text = b"no picture at all"
    files = {
        "empty.jpg": b"",
        "text.jpg": text,
        "cut.png": picture(400, 400)[:-200],
        "cut.jpg": picture(400, 400, "JPEG")[:500],
        "movie.mp4": text,
        "really-a.png": picture(kind="JPEG"),
        "good.png": picture(),
    }

    row = imported(cells, zipped(files), annotated=False)

    named = {p["path"] for p in row.report["problems"] if p["code"] == "bad_image"}
    assert named == {"empty.jpg", "text.jpg", "cut.png", "cut.jpg"}
    assert row.report["problem_counts"]["video"] == 1
    assert {asset.path for asset in row.version.assets.all()} == {"really-a.png", "good.png"}


def test_D08_dataset_import_reports_an_image_of_too_many_pixels_and_goes_on(cells, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)

    row = checked(cells, zipped({"bomb.png": picture(150, 150), "good.png": picture()}), annotated=False)

    assert [(p["path"], p["code"]) for p in row.report["problems"]] == [("bomb.png", "bad_image")]
    assert row.report["problems"][0]["message"]["code"] == "report.too_many_pixels"
    assert row.report["images"] == 1


@pytest.mark.parametrize("orientation", [1, 2, 3, 4, 5, 6, 7, 8, 65537 & 0xFFFF, 0])
def test_D11_dataset_import_takes_sizes_of_the_upright_image(cells, orientation):
    exif = Image.Exif()
    exif[image_files.ORIENTATION] = orientation

    row = imported(cells, zipped({"a.jpg": picture(60, 20, "JPEG", exif=exif)}), annotated=False)

    asset = row.version.assets.get()
    assert (asset.width, asset.height) == ((20, 60) if 5 <= orientation <= 8 else (60, 20))


def test_D15_dataset_import_without_a_usable_annotation_needs_consent(cells):
    notes = [{"id": 1, "image_id": 0, "category_id": 99, "bbox": [1, 1, 2, 2]}]
    row = checked(
        cells, zipped({"a.json": json.dumps(coco(annotations=notes)), "0.png": picture(), "1.png": picture()})
    )

    with pytest.raises(imports.Unlabelled):
        imports.commit(row, by=cells.owner)

    assert "annotations[0].category_id" in [problem["path"] for problem in row.report["problems"]]
    assert not DatasetVersion.objects.exists()
    imports.commit(row, by=cells.owner, allow_unlabelled=True)
    imports.run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.version.annotation_count) == ("done", 0)


def test_D16_dataset_import_of_an_entity_bomb_cannot_be_committed(cells):
    bomb = '<!DOCTYPE a [<!ENTITY l "lol">]><annotation><filename>&l;</filename></annotation>'
    row = checked(cells, zipped({"a.png": picture(), "a.xml": bomb}))

    with pytest.raises(imports.Unlabelled):
        imports.commit(row, by=cells.owner)


def test_D01_dataset_import_of_a_hostile_archive_fails_with_a_sentence(cells):
    row = checked(cells, zipped({"../x.png": picture()}))

    assert (row.state, "unsafe name" in row.error) == ("failed", True)


def test_dataset_import_reports_annotated_data_without_annotations(cells):
    row = checked(cells, zipped({"a.png": picture()}))

    assert (row.report["fatal"], row.report["problems"][0]["code"]) == (1, "no_annotations")


def test_dataset_import_fails_for_an_upload_that_was_not_announced(alice, cells):
    upload = uploaded(alice, small_coco())
    Upload.objects.filter(pk=upload.pk).update(sha256="0" * 64)
    row = imports.start(dataset=cells, by=alice, annotated=True, upload_id=upload.pk)

    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, "SHA-256" in row.error) == ("failed", True)


def test_D13_dataset_import_takes_an_upload_once(alice, cells):
    upload = uploaded(alice, small_coco())
    imports.start(dataset=cells, by=alice, annotated=True, upload_id=upload.pk)

    with pytest.raises(imports.DomainError, match="already imported"):
        imports.start(dataset=make.dataset(alice, "more"), by=alice, annotated=True, upload_id=upload.pk)


def test_dataset_import_is_open_once_per_dataset(alice, cells):
    checked(cells, small_coco())

    with pytest.raises(imports.NotNow):
        imports.start(dataset=cells, by=alice, annotated=True, upload_id=uploaded(alice, small_coco()).pk)


def test_dataset_import_is_worked_on_by_one_of_two_workers(alice, cells, monkeypatch):
    row = imports.start(dataset=cells, by=alice, annotated=True, upload_id=uploaded(alice, small_coco()).pk)
    runs = []
    monkeypatch.setattr(checking, "check", lambda row, claim: (runs.append(row.pk), imports.run(row.pk)))

    imports.run(row.pk)

    assert runs == [row.pk]


def test_dataset_import_cancelled_stops_its_worker_and_leaves_nothing(alice, cells, monkeypatch):
    row = imports.start(dataset=cells, by=alice, annotated=True, upload_id=uploaded(alice, small_coco()).pk)
    real = checking._checked

    def cancel_in_between(*args):
        imports.cancel(Import.objects.get(pk=row.pk))
        return real(*args)

    monkeypatch.setattr(checking, "_checked", cancel_in_between)
    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.folder.exists(), Upload.objects.count()) == ("cancelled", False, 0)


class Killed(BaseException):
    """Stands for SIGKILL: nothing after it runs, no handler catches it."""


def lose_the_worker(row: Import) -> None:
    """Time passes until the dead worker's claim is over; the sweep's nudge arrives."""
    Import.objects.filter(pk=row.pk).update(renewed_at=now() - 2 * TTL, updated_at=now() - TTL)
    assert imports.sweep() == 1
    imports.run(row.pk)
    row.refresh_from_db()


def test_import_whose_worker_is_gone_is_taken_at_once_and_one_in_work_is_not(alice, cells):
    row = imports.start(dataset=cells, by=alice, annotated=True, upload_id=uploaded(alice, small_coco()).pk)
    mine = new_holder()
    dead = mine.rsplit(":", 2)[0] + ":1:x"  # a process of this number that began at another time

    def held_by(holder: str) -> int:
        Import.objects.update(state="checking", holder=holder, renewed_at=now(), updated_at=now() - TTL / 2, tries=1)
        return imports.sweep()

    assert (held_by(mine), held_by(dead)) == (0, 1)
    imports.run(row.pk)
    row.refresh_from_db()
    assert row.state == Import.State.REPORTED


@pytest.mark.parametrize(
    "spot",
    [
        (unpacking, "extract"),
        (unpacking, "write_json"),
        (checking, "_select_images"),
        (plans, "write"),
        (checking, "_report"),
    ],
    ids=lambda spot: spot[1],
)
def test_28_dataset_import_check_killed_anywhere_is_finished_by_the_next(alice, cells, monkeypatch, spot):
    row = imports.start(dataset=cells, by=alice, annotated=True, upload_id=uploaded(alice, small_coco()).pk)

    def die(*_args, **_kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(*spot, die)
        with pytest.raises(Killed):
            imports.run(row.pk)
    lose_the_worker(row)

    assert (row.state, row.report["images"], row.report["annotations"]) == ("reported", 2, 2)


@pytest.mark.parametrize(
    "spot",
    [
        (versions, "allocate"),
        (committing, "_place_images"),
        (versions.writer, "write"),
        (versions, "flush_filesystem"),
        (versions, "_write_rows"),
        (versions, "enqueue"),
        (imports, "clean"),
    ],
    ids=lambda spot: spot[1],
)
def test_28_dataset_import_commit_killed_anywhere_is_never_seen_half(alice, cells, monkeypatch, spot):
    row = checked(cells, small_coco())
    imports.commit(row, by=alice)

    def die(*_args, **_kwargs):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(*spot, die)
        with pytest.raises(Killed):
            imports.run(row.pk)
    if spot[1] != "clean":
        assert not DatasetVersion.objects.visible_to(alice).exists()
        lose_the_worker(row)

    version = DatasetVersion.objects.visible_to(alice).get()
    row.refresh_from_db()
    assert (row.state, version.number, version.image_count, version.assets.count()) == ("done", 1, 2, 2)
    assert len(list((version.path / "images").iterdir())) == 2


def test_dataset_import_that_always_kills_its_worker_fails_and_can_retry(alice, cells):
    row = imports.start(dataset=cells, by=alice, annotated=True, upload_id=uploaded(alice, small_coco()).pk)
    Import.objects.filter(pk=row.pk).update(tries=imports.MAX_ATTEMPTS)

    imports.run(row.pk)
    row.refresh_from_db()
    assert (row.state, "failed 3 times" in row.error) == ("failed", True)

    imports.retry(row)
    imports.run(row.pk)
    row.refresh_from_db()
    assert row.state == "reported"


def test_dataset_import_version_says_what_came_and_what_changed(cells):
    first = imported(cells, zipped({"a.png": picture(), "b.png": picture(colour=(1, 1, 1))}), annotated=False).version
    second = imported(cells, zipped({"a.png": picture(), "c.png": picture(colour=(2, 2, 2))}), annotated=False).version

    assert (first.note, second.note, second.parent) == ("data.zip", "data.zip: +1 −1", first)


def test_import_claim_that_was_lost_writes_nothing(cells):
    row = checked(cells, small_coco())
    stale = Claim(CLAIMS, Import.objects.filter(pk=row.pk), "stale", row.tries)

    with pytest.raises(ClaimLost):
        ImportClaim(stale).write(state="failed")
    with pytest.raises(ClaimLost):
        ImportClaim(stale).finish(state="failed")

    row.refresh_from_db()
    assert row.state == "reported"


def test_dataset_import_draws_voc_boxes_and_finds_them_by_class(cells):
    files = {"a.png": picture(), "a.xml": voc_xml("a.png", ("ring", 1, 2, 30, 20)), "b.png": picture(colour=(9, 9, 9))}

    version = imported(cells, zipped(files)).version

    asset = version.assets.get(path="a.png")
    assert asset.shapes == [[1, "bbox", [1, 2, 30, 20]]]
    assert list(asset.class_rows.values_list("class_id", flat=True)) == [1]


def test_K03_dataset_import_problem_list_has_no_formulas_in_its_cells(as_alice, cells):
    row = checked(cells, zipped({"=1+1.png": b"", "+x.png": b"", "good.png": picture()}), annotated=False)

    table = as_alice.get(f"/datasets/{cells.pk}/imports/{row.pk}/problems.csv")

    lines = b"".join(table.streaming_content).decode("utf-8-sig").splitlines()
    assert [line.split(",")[0] for line in lines] == ["path", "'+x.png", "'=1+1.png"]
