"""Every format becomes the same neutral data set, with its problems named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from datasets.formats import detect
from datasets.formats.listing import Listing
from datasets.formats.neutral import ImageItem, Parsed, box
from datasets.formats.problems import Problems, natural
from datasets.formats.size_checks import fit_to_image
from tests import public_data
from tests.cases import case_table
from tests.datasets.pictures import coco, coco_folder, picture, put, voc_xml

SQUARE = [10, 10, 20, 10, 20, 20, 10, 20]


def read_folder(root: Path) -> Parsed:
    """Detect and read in one go."""
    listing = Listing.scan(root)
    return detect.read(listing, detect.detect(listing))


def codes(parsed: Any) -> dict[str, int]:
    return dict(parsed.problems.counts)


def test_read_folder_reports_the_two_boxes_of_bccd_without_area():
    parsed = read_folder(public_data.need("bccd"))

    counts = parsed.counts()
    assert (parsed.format, counts["images"], counts["annotations"]) == ("voc", 364, 4886)
    assert counts["splits"] == {"train": 205, "val": 87, "test": 72}
    assert {c["name"]: c["count"] for c in counts["classes"]} == {"Platelets": 361, "RBC": 4153, "WBC": 372}
    assert codes(parsed) == {"degenerate_box": 2}
    named = [problem.path for problem in parsed.problems.first(100)]
    assert ["BloodImage_00338" in named[0], "BloodImage_00343" in named[1], len(named)] == [True, True, 2]


def test_read_folder_keeps_categories_of_nuts_and_counts_from_one():
    nuts = public_data.need("nuts", "coco")

    parsed = read_folder(nuts)

    ids = sorted(shape.id for shape in parsed.shapes())
    stored = json.loads((nuts / "trainval.json").read_text())
    assert (parsed.format, len(parsed.images), codes(parsed)) == ("coco", 18, {})
    assert ids == list(range(1, 166))
    assert [c.as_dict() for c in parsed.classes] == [
        {"id": c["id"], "name": c["name"], "supercategory": c["supercategory"]} for c in stored["categories"]
    ]
    assert all(shape.kind == "polygon" for shape in parsed.shapes())


def test_coco_reader_keeps_gapped_categories_crowds_parts_and_masks(tmp_path):
    two = [SQUARE, [1, 1, 5, 1, 5, 5]]
    crowd = {"size": [30, 40], "counts": [600, 60, 540]}
    notes = [
        {
            "id": 5,
            "image_id": 0,
            "category_id": 7,
            "segmentation": two,
            "area": 108.0,
            "bbox": [1, 1, 19, 19],
            "iscrowd": 0,
        },
        {
            "id": 9,
            "image_id": 0,
            "category_id": 3,
            "segmentation": crowd,
            "area": 60,
            "bbox": [20, 0, 2, 30],
            "iscrowd": 1,
        },
        {
            "id": 11,
            "image_id": 1,
            "category_id": 3,
            "bbox": [4, 4, 6, 6],
            "attributes": {"shape": "bbox", "difficult": True},
        },
    ]

    parsed = read_folder(coco_folder(tmp_path, coco(annotations=notes)))

    many, mask, plain = (shape.as_dict() for image in parsed.images for shape in image.shapes)
    assert codes(parsed) == {}
    assert (many["segmentation"], many["area"], many["id"], many["category_id"]) == (
        [[*map(float, r)] for r in two],
        108.0,
        5,
        7,
    )
    assert (mask["segmentation"], mask["iscrowd"], mask["kind"]) == (crowd, 1, "mask")
    assert (plain["kind"], plain["attributes"]) == ("bbox", {"shape": "bbox", "difficult": True})


def test_rle_runs_reads_compressed_masks_like_pycocotools():
    import numpy
    from pycocotools import mask

    from datasets.shapes.rle import rle_runs

    pixels = numpy.zeros((30, 40), dtype=numpy.uint8, order="F")
    pixels[5:20, 7:30] = 1
    pixels[10:15, 12:20] = 0
    packed = mask.encode(pixels)

    size, runs = rle_runs({"size": list(packed["size"]), "counts": packed["counts"].decode()})

    flat = numpy.concatenate([numpy.full(run, index % 2, dtype=numpy.uint8) for index, run in enumerate(runs)])
    assert (flat.reshape(size, order="F") == pixels).all()


def test_coco_reader_moves_ids_from_zero_up_by_one(tmp_path):
    parsed = read_folder(coco_folder(tmp_path, coco()))

    assert [image.id for image in parsed.images] == [1, 2]
    assert [shape.id for shape in parsed.shapes()] == [1, 2]
    assert [c.id for c in parsed.classes] == [7, 3]


def test_coco_reader_joins_files_per_split_without_clashing_ids(tmp_path):
    put(tmp_path, {f"{split}2017/0.png": picture() for split in ("train", "val")})
    for split in ("train", "val"):
        put(tmp_path, {f"annotations/instances_{split}2017.json": json.dumps(coco(1))})
    put(tmp_path, {"annotations/captions_train2017.json": json.dumps(coco(1))})

    parsed = read_folder(tmp_path)

    found = [(image.split, image.path, image.id) for image in parsed.images]
    assert found == [("train", "train2017/0.png", 1), ("val", "val2017/0.png", 2)]
    assert len({shape.id for shape in parsed.shapes()}) == 2


def note(**changes: Any) -> dict[str, Any]:
    """COCO changes: one annotation that differs from a good box by `changes`."""
    return {"annotations": [{"id": 1, "image_id": 0, "category_id": 7, "bbox": [1, 1, 2, 2]} | changes]}


NAN, INF = float("nan"), float("inf")
GOOD = {"id": 0, "file_name": "0.png"}
BROKEN: dict[str, tuple[dict[str, Any], str, str]] = {
    "escape": ({"images": [GOOD | {"file_name": "../../etc/passwd"}]}, "images[0].file_name", "missing_image"),
    "absolute": ({"images": [GOOD | {"file_name": "/etc/passwd"}]}, "images[0].file_name", "missing_image"),
    "twin images": ({"images": [GOOD, GOOD]}, "images[1].id", "duplicate_image"),
    "one id": ({"images": [GOOD, GOOD | {"file_name": "1.png"}]}, "images[1].id", "duplicate_id"),
    "no name": ({"images": [GOOD | {"file_name": 3}]}, "images[0].file_name", "bad_file_name"),
    "category": (note(category_id=99), "annotations[0].category_id", "unknown_category"),
    "list as category": (note(category_id=[7]), "annotations[0].category_id", "unknown_category"),
    "image": (note(image_id=77), "annotations[0].image_id", "unknown_image"),
    "list as image": (note(image_id=[0]), "annotations[0].image_id", "unknown_image"),
    "negative": (note(bbox=[1, 1, -2, 2]), "annotations[0].bbox", "negative_box"),
    "nan": (note(bbox=[1, NAN, 2, 2]), "annotations[0].bbox", "bad_box"),
    "infinite": (note(segmentation=[[1, 1, 2, INF, 3, 3]]), "annotations[0].segmentation[0]", "bad_polygon"),
    "twin notes": ({"annotations": note()["annotations"] * 2}, "annotations[1].id", "same_annotation"),
    "twin categories": (
        {"categories": [{"id": 7, "name": "a"}, {"id": 7, "name": "b"}]},
        "categories[1].id",
        "duplicate_id",
    ),
    "nameless category": ({"categories": [{"id": 7}]}, "categories[0].name", "unnamed_class"),
    "not a list": ({"images": {}}, "", "not_coco"),
    "mask": (note(segmentation={"size": [3, 3], "counts": [4]}), "annotations[0].segmentation", "bad_mask"),
}


@case_table(("changes", "path", "code"), BROKEN.values(), ids=BROKEN)
def test_D15_coco_reader_names_a_fault_by_json_path_and_reads_the_rest(tmp_path, changes, path, code):
    parsed = read_folder(coco_folder(tmp_path, coco(**changes)))

    assert (path, code) in [(p.path, p.code) for p in parsed.problems.listed]
    assert (parsed.problems.fatal, len(parsed.images)) == (0, 2)


@pytest.mark.parametrize(
    "text",
    ['{"images": [], "annotations": [], "categories": [' + "[" * 100_000, '{"images" "annotations" "categories"'],
)
def test_D15_coco_reader_names_json_that_is_none_or_too_deep(tmp_path, text):
    parsed = read_folder(coco_folder(tmp_path, text))

    assert (codes(parsed)["unreadable"], detect.is_unlabelled(parsed)) == (1, True)


def test_D15_coco_reader_tells_the_first_hundred_of_a_thousand_problems(tmp_path):
    notes = [{"id": n, "image_id": 0, "category_id": 99, "bbox": [1, 1, 2, 2]} for n in range(1000)]

    parsed = read_folder(coco_folder(tmp_path, coco(annotations=notes)))

    assert [p.path for p in parsed.problems.first(100)] == [f"annotations[{n}].category_id" for n in range(100)]
    assert parsed.problems.counts["unknown_category"] == 1000


def test_coco_reader_leaves_out_and_names_what_has_no_area_or_file(tmp_path):
    notes = [
        {"id": 1, "image_id": 0, "category_id": 7, "bbox": [1, 1, 0, 2]},
        {"id": 2, "image_id": 0, "category_id": 7, "segmentation": [[1, 1, 2, 2]], "bbox": [1, 1, 1, 1]},
        {"id": 3, "image_id": 0, "category_id": 7, "segmentation": [[1, 1, 2, 2, 3, 3]]},
        {"id": 4, "image_id": 5, "category_id": 7, "bbox": [1, 1, 2, 2]},
    ]
    images = [{"id": 0, "file_name": "0.png"}, {"id": 5, "file_name": "gone.png"}, {"id": 6, "file_name": "0.png"}]

    parsed = read_folder(coco_folder(tmp_path, coco(annotations=notes, images=images)))

    assert parsed.problems.fatal == 0
    assert codes(parsed) == {
        "degenerate_box": 1, "short_polygon": 1, "degenerate_polygon": 1,
        "missing_image": 1, "duplicate_image": 1, "unlisted_image": 1, "lost_shapes": 1,
    }  # fmt: skip
    assert [(image.path, image.annotated) for image in parsed.images] == [("0.png", True), ("1.png", False)]


BOMB = '<!DOCTYPE a [<!ENTITY l "lol"><!ENTITY m "&l;&l;&l;&l;">]><annotation><filename>&m;</filename></annotation>'
OUTSIDE = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><annotation><filename>&x;</filename></annotation>'
REMOTE = '<!DOCTYPE annotation SYSTEM "http://127.0.0.1:9/x.dtd"><annotation/>'


@pytest.mark.parametrize("text", [BOMB, OUTSIDE, REMOTE])
def test_D16_voc_reader_refuses_xml_with_entities_or_a_document_type(tmp_path, text):
    put(tmp_path, {"images/a.png": picture(), "Annotations/a.xml": text})

    parsed = read_folder(tmp_path)

    assert [(p.path, p.code) for p in parsed.problems.listed] == [("Annotations/a.xml", "unsafe_xml")]
    assert (detect.is_unlabelled(parsed), parsed.images[0].annotated) == (True, False)


def test_voc_reader_finds_images_by_stem_and_names_every_problem(tmp_path):
    put(
        tmp_path,
        {
            "JPEGImages/a.png": picture(),
            "JPEGImages/b.png": picture(),
            "Annotations/a.xml": voc_xml(
                "wrong-name.jpg", ("cell", 1, 1, 9, 9), ("cell", 5, 5, 5, 9), ("", 1, 1, 2, 2)
            ),
            "Annotations/b.xml": "<annotation><object>",
            "Annotations/c.xml": voc_xml("c.png", ("cell", 1, 1, 9, 9)),
            "ImageSets/Main/train.txt": "a 1\nnowhere -1\n",
            "ImageSets/Main/test.txt": "a\n",
        },
    )

    parsed = read_folder(tmp_path)

    assert [(image.path, image.split, len(image.shapes)) for image in parsed.images] == [
        ("a.png", "train", 1),
        ("b.png", "", 0),
    ]
    assert codes(parsed) == {
        "degenerate_box": 1, "no_class": 1, "unreadable": 1, "missing_image": 2, "two_splits": 1, "lost_shapes": 1,
    }  # fmt: skip


@pytest.mark.parametrize("wrapper", ["", "my data/", "images/"])
def test_class_folder_reader_reads_classes_beneath_split_folders(tmp_path, wrapper):
    names = [
        f"{wrapper}{split}/{label}/{n}.png"
        for split in ("train", "test")
        for label in ("10", "9", "猫")
        for n in (1, 2)
    ]
    put(tmp_path, {name: picture() for name in names})

    parsed = read_folder(tmp_path)

    assert (parsed.format, parsed.task) == ("folders", "classification")
    assert [(c.id, c.name) for c in parsed.classes] == [(0, "9"), (1, "10"), (2, "猫")]
    assert parsed.counts()["splits"] == {"train": 6, "test": 6}
    assert parsed.images[0].path == "test/9/1.png"


@pytest.mark.parametrize(
    ("names", "is_a"),
    [
        (["a.png", "b.png"], "images"),
        (["images/a.png", "masks.txt"], "images"),
        (["cat/a.png"], "images"),
        (["cat/a.png", "dog/a.png"], "folders"),
        (["cat/a.png", "dog/a.png", "stray.png"], "images"),
        (["readme.txt"], ""),
    ],
)
def test_detect_names_the_format_of_a_folder(tmp_path, names, is_a):
    put(tmp_path, {name: picture() for name in names})

    assert detect.detect(Listing.scan(tmp_path)) == is_a


def test_read_folder_ignores_litter_and_names_foreign_files(tmp_path):
    put(tmp_path, {"x/a.png": picture(), "x/drawing.svg": "<svg/>", "x/.DS_Store": "", "__MACOSX/x/._a.png": ""})

    parsed = read_folder(tmp_path)

    assert [image.path for image in parsed.images] == ["a.png"]
    assert codes(parsed) == {"foreign_image": 1}


def test_fit_to_image_cuts_boxes_at_the_edge_and_drops_shapes_outside():
    image = ImageItem("a", "a", width=100, height=50, shapes=[box(1, -5, 10, 20, 20), box(1, 200, 0, 5, 5)])
    problems = Problems()

    fit_to_image(image, 40, 30, problems)

    assert [shape.bbox for shape in image.shapes] == [(0.0, 10, 15.0, 20.0)]
    assert dict(problems.counts) == {"other_size": 1, "clipped_box": 1, "outside_image": 1}


def test_natural_order_sorts_numbers_by_value():
    assert sorted(["img10", "img9", "a", "img"], key=natural) == ["a", "img", "img9", "img10"]


def test_listing_reads_no_link_in_a_source_folder(tmp_path):
    put(tmp_path / "data", {"a.png": picture()})
    (tmp_path / "data" / "b.png").symlink_to("/etc/passwd")
    (tmp_path / "data" / "more").symlink_to(tmp_path)

    assert Listing.scan(Path(tmp_path / "data")).images == ["a.png"]
