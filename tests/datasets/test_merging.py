"""Versions put together, and versions of chosen images: real files, made by the service that makes all versions."""

from __future__ import annotations

import hashlib
import json

import pytest

from aiplatform.lib.errors import DomainError, Invalid, StillInUse
from datasets.formats.neutral import box
from datasets.formats.writer import StoredImage
from datasets.services import choosing, imports, merging, versions
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db


def version(owner, name, images, classes, *, task="detection", split="train"):
    """A version of images {path: (shade, class id, or None where nobody looked)}."""
    dataset = make.dataset(owner, name)
    content = {path: make.picture(shade=shade) for path, (shade, _class) in images.items()}

    def rows():
        for n, (path, (_shade, class_id)) in enumerate(images.items()):
            shapes = [box(class_id, 2, 3, 10, 8, id=n + 1).as_dict()] if class_id and task == "detection" else []
            label = class_id if task == "classification" else None
            digest = hashlib.sha256(content[path]).hexdigest()
            extra = {"license": 1, "made": name}
            yield StoredImage(path, digest, 40, 30, 100, n + 1, split, label, shapes, bool(class_id), extra)

    def place(target):
        for path, data in content.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)

    named = [{"id": number, "name": label, "supercategory": ""} for number, label in classes.items()]
    return versions.publish(versions.allocate(dataset, by=owner), rows, task=task, classes=named, place_images=place)


def done(row):
    imports.run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.error) == ("done", "")
    return row.version


def test_merged_version_has_classes_by_name_and_equal_images_once(alice):
    first = version(alice, "first", {"a.png": (1, 1), "b.png": (2, None)}, {1: "cell", 2: "plate"})
    second = version(
        alice,
        "second",
        {"a.png": (3, 1), "seen.png": (2, 2), "again.png": (1, 1)},
        {1: "Plate", 2: " CELL "},
        split="val",
    )
    third = version(alice, "third", {"c.png": (4, 1), "d.png": (5, None)}, {1: "ring"})
    into = make.dataset(alice, "all")
    row = merging.start(versions=[first, second, third], dataset=into, by=alice)
    with pytest.raises(StillInUse, match="import all"):
        versions.delete(third, by=alice)

    made = done(row)

    assert made.class_names == {1: "cell", 2: "plate", 3: "ring"}
    assert (made.dataset, made.image_count, made.annotation_count, made.splits) == (into, 5, 4, {"train": 3, "val": 2})
    stands = {asset.path: [made.class_names[shape[0]] for shape in asset.shapes] for asset in made.assets.all()}
    assert stands == {
        "a.png": ["cell"],
        "second_v1/a.png": ["plate"],
        "seen.png": ["cell"],
        "c.png": ["ring"],
        "d.png": [],
    }
    assert made.assets.get(path="d.png").content == 0
    said = json.loads((made.path / "annotations.json").read_text())
    assert len({one["id"] for one in said["annotations"]}) == 4
    assert [one.get("license") for one in said["images"]] == [None] * 4
    assert said["images"][0]["made"] == "first"
    assert (made.images_path / "second_v1/a.png").samefile(second.images_path / "a.png")
    assert str(made.story) == "first v1, second v1, third v1 merged"
    versions.delete(third, by=alice)


def test_images_of_a_folder_on_the_server_are_copied_and_links_there_refused(alice, tmp_path):
    own = version(alice, "own", {"a.png": (1, 1)}, {1: "cell"})
    far = version(alice, "far", {"b.png": (2, 1), "c.png": (3, 1)}, {1: "cell"})
    (tmp_path / "far").mkdir()
    for name in ("b.png", "c.png"):
        (tmp_path / "far" / name).write_bytes((far.images_path / name).read_bytes())
    far.images_root = str(tmp_path / "far")
    far.save()

    made = done(merging.start(versions=[own, far], dataset=make.dataset(alice, "all"), by=alice))
    assert (made.images_root, made.image_count) == ("", 3)
    assert not (made.images_path / "b.png").samefile(tmp_path / "far/b.png")

    (tmp_path / "secret").write_bytes((tmp_path / "far/c.png").read_bytes())
    (tmp_path / "far/c.png").unlink()
    (tmp_path / "far/c.png").symlink_to(tmp_path / "secret")
    row = merging.start(versions=[own, far], dataset=make.dataset(alice, "more"), by=alice)
    imports.run(row.pk)
    row.refresh_from_db()
    assert row.state == "failed"


def test_versions_of_two_kinds_are_not_put_together(alice):
    boxes = version(alice, "boxes", {"a.png": (1, 1)}, {1: "cell"})
    labels = version(alice, "labels", {"b.png": (2, 1)}, {1: "cell"}, task="classification")

    with pytest.raises(DomainError, match=r": they cannot be merged."):
        merging.start(versions=[boxes, labels], dataset=boxes.dataset, by=alice)


def test_chosen_images_come_with_all_they_carry(alice):
    of = version(alice, "cells", {"a.png": (1, 1), "x/b.png": (2, 2), "x/c.png": (3, None)}, {1: "cell", 2: "plate"})
    into = make.dataset(alice, "some")

    made = done(choosing.start(version=of, query="class=PLATE&class=1&split=train", dataset=into, by=alice))

    assert sorted(made.assets.values_list("path", flat=True)) == ["a.png", "x/b.png"]
    assert (made.dataset, made.annotation_count, made.classes) == (into, 2, of.classes)
    assert str(made.story) == "Images of cells v1 with class=PLATE&class=1&split=train"
    assert choosing.paths(of, choosing.parse("?annotated=no&ordering=name")) == {"x/c.png"}
    assert choosing.paths(of, choosing.parse("q=x+b")) == {"x/b.png"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "Specify the images"), ("size=3", "“size” is not supported"), ("annotated=maybe", "one of yes, empty, no"),
        ("split=dev&class=cat", "has no split “dev”. Available splits: train. cells v1 has no class “cat”"),
        ("annotated=empty", "has no image with annotated=empty"),
        ("&".join(f"q={n}" for n in range(101)), "combinations"),
    ],
)  # fmt: skip
def test_words_that_choose_nothing_are_refused(alice, query, said):
    of = version(alice, "cells", {"a.png": (1, 1)}, {1: "cell"})

    with pytest.raises(DomainError) as refused:
        choosing.start(version=of, query=query, dataset=of.dataset, by=alice)
    assert said in refused.value.sentences
    assert isinstance(refused.value, Invalid) or query == "annotated=empty"
