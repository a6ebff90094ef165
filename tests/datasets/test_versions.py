"""Versions appear whole, never change, share images, and are not deleted under their users."""

from __future__ import annotations

import json

import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from aiplatform.lib.errors import StillInUse
from datasets.models import DatasetVersion
from datasets.services import usage, versions
from tests.datasets.pictures import picture
from tests.factories import datasets as make

pytestmark = [pytest.mark.django_db, pytest.mark.postgres]


@pytest.fixture
def v1(alice):
    return make.version(make.dataset(alice), images=5)


def test_dataset_version_is_three_files_and_its_images(v1):
    head = json.loads((v1.path / "dataset.json").read_text())
    lines = [json.loads(line) for line in (v1.path / "manifest.jsonl").read_text().splitlines()]
    coco = json.loads((v1.path / "annotations.json").read_text())

    assert (head["task"], head["images"], head["annotations"], head["splits"]) == ("detection", 5, 5, {"train": 5})
    assert [line["path"] for line in lines] == [f"a/{n}.png" for n in range(5)]
    assert all((v1.path / "images" / line["path"]).is_file() for line in lines)
    assert [(a["id"], a["image_id"], a["attributes"]) for a in coco["annotations"]][:2] == [
        (1, 1, {"shape": "bbox"}),
        (2, 2, {"shape": "bbox"}),
    ]
    assert coco["annotations"][0]["segmentation"] == [[2, 3, 12, 3, 12, 11, 2, 11]]
    assert (v1.is_ready, v1.annotated, v1.image_count, v1.annotation_count, len(v1.manifest_sha256)) == (
        True,
        True,
        5,
        5,
        64,
    )


def test_dataset_version_scores_perfect_against_itself_by_pycocotools(v1):
    truth = COCO(str(v1.path / "annotations.json"))
    found = truth.loadRes([a | {"score": 0.9} for a in truth.dataset["annotations"]])

    judge = COCOeval(truth, found, "bbox")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()

    assert judge.stats[0] == pytest.approx(1.0)


def test_dataset_version_from_annotations_shares_the_images(v1, alice, tmp_path):
    coco = {
        "images": [{"id": 9, "file_name": "a/3.png", "width": 40, "height": 30}],
        "categories": [{"id": 4, "name": "ring", "supercategory": "x"}],
        "annotations": [{"id": 1, "image_id": 9, "category_id": 4, "segmentation": [[1, 1, 9, 1, 9, 9]], "iscrowd": 0}],
    }
    (tmp_path / "export.json").write_text(json.dumps(coco))

    v2 = versions.create_from_coco(
        dataset=v1.dataset, parent=v1, coco=tmp_path / "export.json", by=alice, note="annotated"
    )

    kept = json.loads((v2.path / "annotations.json").read_text())
    assert (v2.number, v2.parent, v2.image_count, v2.annotation_count, v2.splits) == (2, v1, 5, 1, {"train": 5})
    assert (v2.path / "images/a/0.png").stat().st_ino == (v1.path / "images/a/0.png").stat().st_ino
    assert [image["file_name"] for image in kept["images"]] == ["a/3.png"]  # nobody said that the others are empty
    assert kept["images"][0]["id"] == kept["annotations"][0]["image_id"]
    assert v2.assets.get(path="a/3.png").shapes == [[4, "polygon", [1, 1, 9, 1, 9, 9]]]
    assert list(DatasetVersion.objects.visible_to(alice).values_list("number", flat=True)) == [2, 1]


def test_dataset_version_refuses_annotations_of_missing_images(v1, alice, tmp_path):
    coco = {"images": [{"id": 1, "file_name": "other.png"}], "categories": [], "annotations": []}
    (tmp_path / "export.json").write_text(json.dumps(coco))

    with pytest.raises(versions.AnnotationsRefused, match=r"other\.png"):
        versions.create_from_coco(dataset=v1.dataset, parent=v1, coco=tmp_path / "export.json", by=alice)

    assert v1.dataset.versions.count() == 1


def test_dataset_version_in_use_is_not_deleted(v1, alice):
    with (
        usage.ASKERS.temporarily(lambda version: [f"training of v{version.number}"]),
        pytest.raises(StillInUse, match="training of v1"),
    ):
        versions.delete(v1, by=alice)

    folder = v1.path
    versions.delete(v1, by=alice)
    assert not folder.exists()


@pytest.mark.parametrize("dies_at", ["place", "write", "rename", "rows", "ready"])
def test_28_dataset_version_cut_at_any_step_is_completed_by_the_next_try(alice, monkeypatch, dies_at):
    owned = make.dataset(alice)
    v = versions.allocate(owned, by=alice)
    images = [versions.StoredImage(f"{n}.png", "0" * 64, 40, 30, 70, n + 1, label=n % 2) for n in range(10)]

    def place(target):
        target.mkdir(exist_ok=True)
        for n, image in enumerate(images):
            if dies_at == "place" and n == 5 and not (target / "5.png").exists():
                (target / "5.png").touch()
                raise KeyboardInterrupt
            (target / image.path).write_bytes(picture())

    def publish():
        return versions.publish(v, lambda: iter(images), task="classification", classes=[], place_images=place)

    class Died(BaseException):
        pass

    def die(*_args, **_kwargs):
        raise Died

    target = {
        "write": (versions.writer, "write"),
        "rename": (versions, "flush_filesystem"),
        "rows": (versions.AssetClass.objects, "bulk_create"),
        "ready": (versions, "enqueue"),
    }
    monkeypatch.setattr(versions, "ROWS", 4)
    with monkeypatch.context() as patch:
        if dies_at in target:
            patch.setattr(*target[dies_at], die)
        with pytest.raises((Died, KeyboardInterrupt)):
            publish()
    assert not DatasetVersion.objects.visible_to(alice).exists()

    done = publish()

    assert (done.is_ready, done.image_count, done.assets.count()) == (True, 10, 10)
    assert len(list((done.path / "images").iterdir())) == 10
