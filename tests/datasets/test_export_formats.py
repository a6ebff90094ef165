"""YOLO and Pascal VOC as a program that knows only the format reads them; what is lost is said in the README."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import PurePosixPath
from xml.etree import ElementTree

import pytest

from datasets.formats.exports import FORMATS
from datasets.formats.exports.yolo import join_rings
from datasets.formats.neutral import box
from datasets.formats.writer import StoredImage
from datasets.services import versions
from datasets.shapes import geometry
from tests import public_data
from tests.datasets.helpers import imported, zipped_folder
from tests.factories import annotation as annotating
from tests.factories import datasets as make

pytestmark = pytest.mark.django_db

PARTS = [[1.0, 1.0, 9.0, 1.0, 9.0, 9.0], [20.0, 20.0, 30.0, 20.0, 25.0, 29.0]]
RLE = {"size": [30, 40], "counts": [30 * 4 + 4, 6, 24, 6, 24, 6, 30 * 40 - (30 * 4 + 4) - 66]}


def polygon(class_id, rings, number, **more):
    bbox = list(geometry.extents(rings))
    entry = {"id": number, "category_id": class_id, "kind": "polygon", "segmentation": rings, "bbox": bbox}
    return entry | {"area": geometry.area(rings), "iscrowd": 0, "attributes": {}} | more


def mixed(owner):
    """Two images of one stem, an empty one; a box, an outline in parts, a mask, a crowd, attributes, a box too thin."""
    drawn = [
        [box(7, 2.5, 3.25, 10, 8, id=1).as_dict(), polygon(3, PARTS, 2)],
        [
            {**polygon(3, PARTS[:1], 3), "kind": "mask", "segmentation": RLE, "bbox": [4, 4, 3, 6], "area": 18},
            polygon(3, PARTS[:1], 4, iscrowd=1),
        ],
        [box(7, 1, 1, 5, 5, id=5, attributes={"difficult": True}).as_dict(), box(7, 39.8, 1, 0.2, 5, id=6).as_dict()],
        [],
    ]
    named = [("a/0.png", "train"), ("b/0.png", "val"), ("b/1.png", "train"), ("b/2.png", "")]
    content = make.picture()

    def rows():
        for n, ((path, split), shapes) in enumerate(zip(named, drawn, strict=True)):
            yield StoredImage(path, f"{n:064x}", 40, 30, len(content), n + 1, split, None, shapes)

    def place(target):
        for path, _split in named:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(content)

    classes = [{"id": 7, "name": "cell", "supercategory": ""}, {"id": 3, "name": 'pla"te & <co>', "supercategory": ""}]
    version = versions.allocate(make.dataset(owner), by=owner)
    return versions.publish(version, rows, task="detection", classes=classes, place_images=place)


def fetched(client, version, form):
    answer = client.get(f"/datasets/{version.dataset_id}/v{version.number}/download/?as={form}")
    assert (answer.status_code, answer["Accept-Ranges"]) == (200, "bytes")
    data = b"".join(answer.streaming_content)
    assert len(data) == int(answer["Content-Length"])
    return zipfile.ZipFile(io.BytesIO(data))


def yolo_rows(archive, name):
    return [[float(word) for word in line.split()] for line in archive.read(f"labels/{name}.txt").decode().splitlines()]


def test_yolo_of_a_version_has_boxes_in_parts_of_the_image(as_alice, alice):
    archive = fetched(as_alice, mixed(alice), "yolo")

    names = set(archive.namelist())
    assert {"data.yaml", "README.txt", "images/train/a/0.png", "images/val/b/0.png", "images/unsplit/b/2.png"} <= names
    assert yolo_rows(archive, "train/a/0")[0] == pytest.approx([0, 7.5 / 40, 7.25 / 30, 10 / 40, 8 / 30])
    assert yolo_rows(archive, "train/a/0")[1] == pytest.approx([1, 15.5 / 40, 15 / 30, 29 / 40, 28 / 30])
    assert yolo_rows(archive, "val/b/0") == [pytest.approx([1, 5.5 / 40, 7 / 30, 3 / 40, 6 / 30])]
    assert archive.read("labels/unsplit/b/2.txt") == b""
    yaml = archive.read("data.yaml").decode()
    assert "train: images/train\nval: images/val\nnames:" in yaml
    assert '1: "pla\\"te & <co>"  # id 3' in yaml
    said = archive.read("README.txt").decode()
    assert "1 × a crowd (iscrowd=1), left out" in said
    assert "1 × an object with attributes, which are not written" in said
    assert "2 × an outline, written as the box around it" in said
    assert "2 × a class that gets another id" in said


def test_yolo_segment_has_outlines_of_the_same_area(as_alice, alice):
    archive = fetched(as_alice, mixed(alice), "yolo-seg")

    (_cell, *corners), (_plate, *outline) = yolo_rows(archive, "train/a/0")
    pixels = [value * (40, 30)[n % 2] for n, value in enumerate(outline)]
    assert len(corners) == 8
    assert abs(geometry.signed_area(pixels)) == pytest.approx(geometry.area(PARTS), abs=1e-3)
    assert "1 × an object in several parts" in archive.read("README.txt").decode()


def test_parts_joined_keep_area_and_extents_whichever_way_they_turn():
    rings = [
        [0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0],
        [10.0, 0.0, 10.0, 2.0, 12.0, 2.0],
        [20.0, 5.0, 22.0, 5.0, 22.0, 9.0],
    ]

    whole = join_rings(rings)

    assert abs(geometry.signed_area(whole)) == pytest.approx(geometry.area(rings))
    assert geometry.extents([whole]) == geometry.extents(rings)


def test_voc_of_a_version_has_whole_pixels_and_flat_names(as_alice, alice):
    archive = fetched(as_alice, mixed(alice), "voc")

    names = set(archive.namelist())
    assert {"JPEGImages/a__0.png", "JPEGImages/b__0.png", "JPEGImages/1.png", "Annotations/2.xml"} <= names
    assert archive.read("ImageSets/Main/train.txt") == b"a__0\n1\n"
    first, plate = ElementTree.fromstring(archive.read("Annotations/a__0.xml")).iter("object")
    assert [int(side.text) for side in first.find("bndbox")] == [2, 3, 12, 11]
    assert plate.findtext("name") == 'pla"te & <co>'
    hard, thin = ElementTree.fromstring(archive.read("Annotations/1.xml")).iter("object")
    assert hard.findtext("difficult") == "1"
    assert [int(side.text) for side in thin.find("bndbox")] == [39, 1, 40, 6]
    assert not list(ElementTree.fromstring(archive.read("Annotations/2.xml")).iter("object"))
    said = archive.read("README.txt").decode()
    assert "1 × a box narrower than a pixel, written one pixel wide" in said
    assert "attributes" not in said.partition("could not carry")[2]


@pytest.mark.parametrize("form", ["tar", "zip", "yolo", "yolo-seg", "voc"])
def test_download_of_any_format_is_resumed(api, alice, form):
    version = mixed(alice)
    where = f"/api/v1/versions/{version.pk}/download/?as={form}"
    whole = api.get(where)
    data = b"".join(whole.streaming_content)

    rest = api.get(where, headers={"Range": "bytes=700-", "If-Range": whole["ETag"]})

    assert (rest.status_code, b"".join(rest.streaming_content)) == (206, data[700:])


def test_download_of_another_format_does_not_exist(as_alice, api, alice):
    labelled = make.version(make.dataset(alice), task="classification")

    assert as_alice.get(f"/datasets/{labelled.dataset_id}/v1/download/?as=yolo").status_code == 404
    assert api.get(f"/api/v1/versions/{labelled.pk}/download/?as=voc").status_code == 400


@pytest.mark.parametrize("form", FORMATS.names())
def test_project_is_written_in_every_format(alice, as_alice, form):
    made = annotating.annotation_set(alice)
    annotating.draw(made.tasks.select_related("asset").get(number=2), alice)

    export = annotating.converted(made, alice, target=form)

    assert (export.state, export.annotations, export.version.annotation_count) == ("success", 1, 1)
    answer = as_alice.get(f"/annotation/projects/{made.project_id}/exports/{export.pk}/download/")
    archive = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
    named = [PurePosixPath(name) for name in archive.namelist()]
    assert (
        sum(name.suffix in {".txt", ".xml"} and name.stem == "1" for name in named) == 1
    )  # only that one was drawn on
    assert not any(name.suffix == ".png" for name in named)
    assert "The images themselves are not in this file" in archive.read("README.txt").decode()


@pytest.mark.parametrize("form", ["yolo", "voc"])
def test_real_boxes_come_back_within_half_a_pixel(as_alice, alice, form):
    version = imported(make.dataset(alice), zipped_folder(public_data.need("nuts", "coco"))).version
    truth = json.loads((version.path / "annotations.json").read_text())
    archive = fetched(as_alice, version, form)

    for image in truth["images"]:
        stem = PurePosixPath(image["file_name"]).with_suffix("")
        boxes = [a["bbox"] for a in truth["annotations"] if a["image_id"] == image["id"]]
        sides = [[x, y, x + w, y + h] for x, y, w, h in boxes]
        read = _yolo_sides(archive, stem, image) if form == "yolo" else _voc_sides(archive, stem)
        assert len(read) == len(sides)
        for mine, theirs in zip(sides, read, strict=True):
            assert max(abs(a - b) for a, b in zip(mine, theirs, strict=True)) <= 0.5


def _yolo_sides(archive, stem, image):
    found = []
    for _class, x, y, w, h in yolo_rows(archive, f"{image['split'] or 'unsplit'}/{stem}"):
        width, height = image["width"], image["height"]
        found.append([(x - w / 2) * width, (y - h / 2) * height, (x + w / 2) * width, (y + h / 2) * height])
    return found


def _voc_sides(archive, stem):
    root = ElementTree.fromstring(archive.read(f"Annotations/{stem.name}.xml"))
    return [[float(side.text) for side in found.find("bndbox")] for found in root.iter("object")]
