"""Every file of a data set is accounted for, and nobody's silence is taken for an answer."""

from __future__ import annotations

import json

import pytest
from django.utils.translation import gettext_lazy

from aiplatform.lib.wording import message
from datasets.formats.neutral import Parsed
from tests.datasets.pictures import coco, coco_folder, picture, put, voc_xml
from tests.datasets.read_folders import codes, mask_png, notes, read_folder, said, two_objects


def test_voc_masks_are_no_pictures_and_images_without_xml_are_not_annotated(tmp_path):
    put(
        tmp_path,
        {f"JPEGImages/{n}.jpg": picture(kind="JPEG") for n in "abc"}
        | {"Annotations/a.xml": voc_xml("a.jpg", ("cell", 1, 1, 9, 9)), "Annotations/b.xml": voc_xml("b.jpg")}
        | {f"SegmentationClass/{n}.png": mask_png(two_objects()) for n in "ab"}
        | {f"SegmentationObject/{n}.png": mask_png(two_objects()) for n in "ab"}
        | {"ImageSets/Main/train.txt": "a\nb\n", "ImageSets/Main/val.txt": "c\n"}
        | {"ImageSets/Segmentation/train.txt": "a\nc\n", "ImageSets/Main/cell_train.txt": "a 1\n"},
    )

    parsed = read_folder(tmp_path)

    assert (parsed.format, said(parsed)) == ("voc", {"a.jpg": (True, 1), "b.jpg": (True, 0), "c.jpg": (False, 0)})
    assert (codes(parsed), notes(parsed)) == ({}, {"mask_not_read": 4})
    assert parsed.counts()["splits"] == {"train": 2, "val": 1}


def test_coco_reader_keeps_what_it_does_not_understand(tmp_path):
    data = coco()
    data |= {"info": {"year": 2017, "contributor": "us"}, "licenses": [{"id": 1, "name": "CC"}]}
    data["images"][0] |= {"license": 1, "coco_url": "http://x/0.png"}
    data["annotations"][0] |= {"keypoints": [1, 2, 2, 0, 0, 0], "num_keypoints": 1}
    data["categories"][0] |= {"keypoints": ["nose", "ear"], "skeleton": [[1, 2]]}

    parsed = read_folder(coco_folder(tmp_path, data))

    assert codes(parsed) == {}
    assert parsed.head == {"info": data["info"], "licenses": data["licenses"]}
    assert parsed.images[0].extra == {"license": 1, "coco_url": "http://x/0.png"}
    assert parsed.images[0].shapes[0].as_dict()["keypoints"] == [1, 2, 2, 0, 0, 0]
    assert parsed.classes[0].extra == {"keypoints": ["nose", "ear"], "skeleton": [[1, 2]]}


def test_coco_reader_names_the_other_json_files_beside_it(tmp_path):
    captions = json.dumps(
        {"images": [{"id": 1, "file_name": "0.png"}], "annotations": [{"id": 1, "caption": "a cell"}]}
    )
    put(tmp_path, {"annotations/captions.json": captions, "annotations/person_keypoints.json": json.dumps(coco())})
    put(tmp_path, {"annotations/instances.json": json.dumps(coco()), "settings.json": "{}"})
    put(tmp_path, {f"images/{n}.png": picture() for n in range(2)})

    parsed = read_folder(tmp_path)

    assert (parsed.format, codes(parsed)) == ("coco", {"captions": 1, "other_labels": 1})
    assert notes(parsed) == {"odd_json": 1}


def test_coco_reader_takes_the_nearest_of_two_images_of_one_name_and_says_so(tmp_path):
    put(
        tmp_path,
        {"b/annotations/a.json": json.dumps(coco(1)), "b/images/0.png": picture(), "a/images/0.png": picture()},
    )

    parsed = read_folder(tmp_path)

    assert said(parsed) == {"0.png": (True, 1), "a/images/0.png": (False, 0)}
    assert parsed.images[0].source == "b/images/0.png"
    assert codes(parsed) == {"several_images": 1, "unlisted_image": 1}


def test_coco_reader_counts_the_shapes_of_a_second_file_for_the_same_image(tmp_path):
    put(tmp_path, {"a.json": json.dumps(coco()), "b.json": json.dumps(coco())})
    put(tmp_path, {f"images/{n}.png": picture() for n in range(2)})

    parsed = read_folder(tmp_path)

    assert codes(parsed) == {"duplicate_image": 2, "lost_shapes": 2}


@pytest.mark.parametrize(
    ("files", "split"),
    [
        ({"train/images/a.png": b"", "train/labels/a.txt": "0 0.5 0.5 0.2 0.2"}, "train"),
        ({"val/a.png": b"", "val/a.xml": voc_xml("a.png")}, "val"),
        ({"test/train/a.png": b"", "test/train/a.xml": voc_xml("a.png")}, "train"),
        ({"cells/a.png": b"", "cells/a.xml": voc_xml("a.png")}, ""),
    ],
)
def test_listing_keeps_a_top_folder_that_is_a_split(tmp_path, files, split):
    put(tmp_path, {name: content or picture() for name, content in files.items()})

    assert [image.split for image in read_folder(tmp_path).images] == [split]


def test_detect_names_each_file_that_is_no_part_of_the_data(tmp_path):
    put(tmp_path, {
        "a.png": picture(), "b.CR2": "x", "c.docx": "x", "d.zip": "x", "e.mp4": "x", "f.npy": "x", "README.md": "x",
        "labels.csv": "filename,xmin,ymin,xmax,ymax,class\na.png,1,1,2,2,x\n", "g.svg": "<svg/>",
        "via.json": '{"_via_settings": {}, "_via_img_metadata": {}}', "h.xml": "<a/>", "Thumbs.db": "",
    })  # fmt: skip

    parsed = read_folder(tmp_path)

    assert codes(parsed) == {
        "raw_photo": 1, "archive_inside": 1, "video": 1, "foreign_labels": 2, "foreign_image": 1,
    }  # fmt: skip
    assert notes(parsed) == {"document": 1, "array_file": 1, "other_file": 1, "odd_xml": 1}


def test_problems_are_grouped_with_a_count_and_a_few_examples():
    problems = Parsed("images", "none").problems
    for n in range(128):
        problems.add(f"{n}.png", "same_content", message("report.same_content", other=f"{n + 1}.png"))
    problems.add("a.json", "unreadable", message("report.not_utf8"), fatal=True)
    problems.note("README.md", "other_file", message("report.other_file"))

    groups = [group.as_dict() for group in problems.groups()]

    assert [(g["level"], g["code"], g["count"], len(g["examples"])) for g in groups] == [
        ("fatal", "unreadable", 1, 1), ("problem", "same_content", 128, 5), ("note", "other_file", 1, 1),
    ]  # fmt: skip
    assert (len(problems), problems.fatal) == (129, 1)


def test_problems_take_no_prose():
    problems = Parsed("images", "none").problems

    for prose in ("The file is empty.", gettext_lazy("The file is empty.")):
        with pytest.raises(TypeError, match="registered code"):
            problems.add("a.png", "bad_image", prose)
    assert problems.groups() == []
