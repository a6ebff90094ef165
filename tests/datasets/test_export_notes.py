"""README of an export: "Nothing was lost" exactly where reading the archive again gives what was exported."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from datasets.formats.exports import FORMATS, Drawn, Source
from datasets.formats.size_checks import fit_to_image
from tests.datasets.pictures import picture
from tests.datasets.read_folders import read_folder

WIDTH, HEIGHT = 40, 30
BOX = [4.0, 6.0, 10.0, 8.0]
RING = [1.0, 1.0, 9.0, 1.0, 9.0, 9.0]
HOLED = {"size": [HEIGHT, WIDTH], "counts": [124, 6, 24, 1, 4, 1, 24, 6, 1010]}


def corners(box: list[float]) -> list[float]:
    x, y, width, height = box
    return [x, y, x + width, y, x + width, y + height, x, y + height]


def entry(segmentation: Any = None, bbox: list[float] | None = None, area: float = 80, **more: Any) -> dict[str, Any]:
    boxed = segmentation is None
    attributes = {"shape": "bbox"} if boxed else {}
    return {
        "id": 1, "image_id": 1, "category_id": 1, "iscrowd": 0, "area": area, "bbox": bbox or BOX,
        "segmentation": [corners(bbox or BOX)] if boxed else segmentation,
        **more, "attributes": attributes | more.get("attributes", {}),
    }  # fmt: skip


POLYGON = {"segmentation": [RING], "bbox": [1, 1, 8, 8], "area": 32}
#: What is stored → formats that carry all of it.
CASES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "box": (entry(), {"yolo", "yolo-seg", "voc"}),
    "box between pixels": (entry(bbox=[4.5, 6.25, 10, 8]), {"yolo", "yolo-seg"}),
    "box beyond the edge": (entry(bbox=[35, 6, 10, 8]), set()),
    "box of a stated area": (entry(area=31), set()),
    "polygon": (entry(**POLYGON), {"yolo-seg"}),
    "parts": (entry([RING, [20.0, 20.0, 30.0, 20.0, 25.0, 29.0]], [1, 1, 29, 28], 77), set()),
    "mask": (entry(HOLED, [4, 4, 3, 6], 16), set()),
    "crowd": (entry(**POLYGON, iscrowd=1), set()),
    "difficult": (entry(attributes={"difficult": True}), {"voc"}),
    "attribute": (entry(attributes={"colour": "red"}), set()),
    "keypoints": (entry(keypoints=[5, 7, 2], num_keypoints=1), set()),
    "stated box": (entry([RING], [1, 1, 20, 20], 32), set()),
    "further field": (entry(score=0.5), set()),
}
HEADS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "supercategory": ({"supercategory": "blood"}, {}, {}),
    "names of keypoints": ({"keypoints": ["nose"]}, {}, {}),
    "licence of an image": ({}, {"license": 1}, {}),
    "licences": ({}, {}, {"licenses": [{"id": 1}]}),
    "info": ({}, {}, {"info": {"description": "x", "version": "1", "year": 2020}}),
    "another class id": ({"id": 9}, {}, {}),
}


def written(form: str, stored: dict[str, Any], root: Path, *, more: Any = ({}, {}, {})) -> tuple[str, Path]:
    """The README of an archive of one image with one object, and its files unpacked."""
    of_class, of_image, head = more
    classes = [{"id": 1, "name": "cell"} | of_class]
    stored = stored | {"category_id": classes[0]["id"]}
    image = Drawn("a.png", WIDTH, HEIGHT, "train", annotated=True, objects=[stored], extra=of_image)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for piece in FORMATS.get(form).pieces(Source("cells v1", classes, lambda: [image], head=head)):
            archive.writestr(piece.name, picture(WIDTH, HEIGHT) if piece.image else piece.data)
    with zipfile.ZipFile(out) as archive:
        archive.extractall(root)
    return (root / "README.txt").read_text(), root


def read_back(root: Path) -> list[dict[str, Any]]:
    parsed = read_folder(root)
    for image in parsed.images:
        fit_to_image(image, WIDTH, HEIGHT, parsed.problems)
    names = {info.id: info.name for info in parsed.classes}
    return [shape.as_dict() | {"category": names[shape.class_id]} for shape in parsed.shapes()]


def same(stored: dict[str, Any], found: list[dict[str, Any]]) -> bool:
    """Whether one object came back, with all that was stored of it."""
    if len(found) != 1 or isinstance(stored["segmentation"], dict):
        return False
    (back,) = found
    numbers = [*stored["bbox"], stored["area"], *(value for ring in stored["segmentation"] for value in ring)]
    others = [*back["bbox"], back["area"], *(value for ring in back["segmentation"] for value in ring)]
    further = {key: value for key, value in stored.items() if key not in back}
    kept = {key: value for key, value in back["attributes"].items() if key != "shape"}
    given = {key: value for key, value in stored["attributes"].items() if key != "shape"}
    return (
        numbers == pytest.approx(others, abs=1e-3)
        and kept == given
        and back["iscrowd"] == stored["iscrowd"]
        and further.keys() <= {"image_id", "kind"}
    )


@pytest.mark.parametrize("form", FORMATS.names())
@pytest.mark.parametrize("case", CASES)
def test_nothing_was_lost_is_said_exactly_where_the_object_comes_back(tmp_path, form, case):
    stored, whole = CASES[case]

    said, root = written(form, stored, tmp_path)

    assert ("Nothing was lost." in said) == (form in whole), said
    assert same(stored, read_back(root)) == (form in whole)


@pytest.mark.parametrize("form", FORMATS.names())
@pytest.mark.parametrize("case", HEADS)
def test_fields_of_classes_images_and_the_dataset_that_are_not_written_are_counted(tmp_path, form, case):
    said, _root = written(form, entry(), tmp_path, more=HEADS[case])

    assert "Nothing was lost." not in said
    assert "1 × " in said


def test_readme_of_yolo_says_what_data_yaml_names(tmp_path):
    unsplit = Drawn("a.png", WIDTH, HEIGHT, "", annotated=True, objects=[])
    split = Drawn("b.png", WIDTH, HEIGHT, "train", annotated=True, objects=[])
    texts = {}
    for name, images in (("alone", [unsplit]), ("mixed", [unsplit, split])):
        pieces = FORMATS.get("yolo").pieces(Source("x", [{"id": 1, "name": "c"}], lambda images=images: images))
        texts[name] = {piece.name: piece.data.decode() for piece in pieces if not piece.image}

    assert "images/unsplit" in texts["alone"]["data.yaml"]
    assert "images/unsplit" not in texts["mixed"]["data.yaml"]
    assert all("data.yaml names it only where no image has a split" in one["README.txt"] for one in texts.values())


def test_an_imported_area_of_a_box_is_kept(tmp_path):
    data = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": "c"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": BOX, "area": 31}],
    }
    (tmp_path / "a.png").write_bytes(picture(WIDTH, HEIGHT))
    (tmp_path / "a.json").write_text(json.dumps(data))

    assert read_back(tmp_path)[0]["area"] == 31
