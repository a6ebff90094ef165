"""Faults that archives of other tools and hand-made scripts brought to light: nothing is lost or moved in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datasets.formats import detect
from tests.cases import case_table
from tests.datasets.pictures import coco, coco_folder, picture, put, voc_xml
from tests.datasets.read_folders import LINE, codes, notes, photo, read_folder, said
from tests.datasets.read_folders import yolo_pairs as pairs

# --- YOLO


@case_table(
    ("line", "code", "note"),
    [
        ("# drawn by hand", {}, {}),
        ("0 0.2 0.2 0.1 0.1  # a cell", {}, {}),
        ("0 0.2 0.2 0.1 0.1 7", {}, {"score": 1}),  # the number of a track
    ],
)
def test_yolo_reader_takes_comments_and_track_numbers(tmp_path, line, code, note):
    parsed = read_folder(put(tmp_path, pairs(i0=f"{line}\n{LINE}")))

    assert said(parsed)["0.png"] == (True, 1 if line.startswith("#") else 2)
    assert (codes(parsed), notes(parsed)) == (code, note)


@pytest.mark.parametrize(
    "text",
    [b"0 0.5 0.5\n", b"0 0.1 0.1 0.5 0.5 0.1 0.5 0.5 0.1\n", b"0 nan 0.5 0.1 0.1\n0 9 9 9 9\n", bytes(range(128, 256))],
)
def test_an_image_whose_objects_were_all_lost_is_not_annotated(tmp_path, text):
    files = pairs() | {"labels/0.txt": text, "labels/1.txt": b"\n"}

    parsed = read_folder(put(tmp_path, files))

    assert said(parsed) == {"0.png": (False, 0), "1.png": (True, 0), "2.png": (True, 1)}


def test_yolo_reader_counts_the_lines_of_a_label_file_without_an_image(tmp_path):
    parsed = read_folder(put(tmp_path, pairs() | {"labels/gone.txt": LINE + "0 0.2 0.2 0.1 0.1\n"}))

    assert (codes(parsed), parsed.problems.skipped) == ({"missing_image": 1, "lost_shapes": 2}, 2)


@case_table(
    ("files", "code", "names"),
    [
        ({"data.yaml": "names:\n\t- cell\n"}, "unreadable", ["0"]),
        ({"data.yaml": "names: [cell, ring]\n", "classes.txt": "ring\ncell\n"}, "other_names", ["cell", "ring"]),
        ({"data.yaml": "names: ['', ' ring ']\n"}, "unnamed_class", ["0", "ring"]),
        ({"data.yaml": "names: [cell, cell]\n"}, "same_class_name", ["cell", "cell"]),
        ({"data.yaml": "nc: 2\n", "classes.txt": "cell\n\nring\n"}, None, ["cell", "ring"]),
    ],
)
def test_doubtful_lists_of_classes_are_problems(tmp_path, files, code, names):
    parsed = read_folder(put(tmp_path, pairs() | files))

    assert set(codes(parsed)) - {"unnamed_class"} == {code} - {None, "unnamed_class"}
    assert (code == "unnamed_class") <= ("unnamed_class" in codes(parsed))
    assert [info.name for info in parsed.classes] == names


def test_an_empty_line_keeps_its_place_in_a_list_of_classes(tmp_path):
    files = {"a.png": photo(), "a.txt": "2 0.5 0.5 0.1 0.1\n", "classes.txt": "cell\n\nring\n"}

    parsed = read_folder(put(tmp_path, files))

    assert {info.id: info.name for info in parsed.classes} == {1: "cell", 3: "ring"}


# --- files that look like annotations


@case_table(
    ("name", "text"),
    [
        ("labels/a.txt", "cell 0.5 0.5 0.1 0.1\n"),
        ("train.txt", "images/a.png 1,2,30,40,0 5,5,9,9,1\n"),
        ("gt_a.txt", "10,10,30,10,30,40,10,40,word\n"),
        ("train.csv", 'image_id,width,height,bbox\na,40,30,"[1.0, 2.0, 3.0, 4.0]"\n'),
        ("_classes.csv", "filename, cell, ring\na.png, 1, 0\n"),
        ("results.json", json.dumps([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}])),
        ("tasks.json", json.dumps([{"id": 1, "data": {"image": "a.png"}, "annotations": [], "predictions": [
            {"result": [{"value": {}}]}]}])),
    ],
)  # fmt: skip
def test_data_without_a_usable_annotation_is_unlabelled(tmp_path, name, text):
    parsed = read_folder(put(tmp_path, {"images/a.png": photo(), name: text}))

    assert detect.is_unlabelled(parsed)


@pytest.mark.parametrize("text", ["a photo of 2 cats\n", "Trained on 5 images.\nSee the paper.\n", "1\n2\n3\n4\n"])
def test_texts_with_few_numbers_are_no_annotations(tmp_path, text):
    parsed = read_folder(put(tmp_path, {"images/a.png": photo(), "images/a.txt": text}))

    assert not detect.is_unlabelled(parsed)


# --- COCO


@pytest.mark.parametrize("ring", [[1, 1, 9, 1, 9, 9], [[[1, 1], [9, 1], [9, 9]]]])
def test_coco_reader_takes_polygons_that_scripts_nest_otherwise(tmp_path, ring):
    data = coco(1)
    data["annotations"][0] = {"id": 1, "image_id": 0, "category_id": 7, "segmentation": ring}

    parsed = read_folder(coco_folder(tmp_path, data, images=1))

    assert [shape.segmentation for shape in parsed.shapes()] == [[[1, 1, 9, 1, 9, 9]]]


def test_coco_reader_takes_hashes_as_ids_and_files_without_categories(tmp_path):
    data = coco(1, images=[{"id": 2**63, "file_name": "0.png", "width": 40, "height": 30}])
    data["annotations"][0] |= {"image_id": 2**63, "id": 2**64}
    del data["categories"]

    parsed = read_folder(coco_folder(tmp_path, data, images=1))

    assert (said(parsed), codes(parsed)) == ({"0.png": (True, 1)}, {"unnamed_class": 1})
    assert [info.name for info in parsed.classes] == ["7"]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_coco_reader_reads_utf_16_without_a_mark(tmp_path, encoding):
    text = json.dumps(coco(1), ensure_ascii=False).replace("cell", "Käfer")
    put(tmp_path, {"0.png": picture(), "labels.json": text.encode(encoding)})

    parsed = read_folder(tmp_path)

    assert (parsed.classes[0].name, said(parsed)) == ("Käfer", {"0.png": (True, 1)})


def test_boxes_in_fractions_where_pixels_are_meant_are_a_problem(tmp_path):
    data = coco(2)
    for annotation in data["annotations"]:
        annotation["bbox"] = [0.1, 0.2, 0.3, 0.4]

    assert codes(read_folder(coco_folder(tmp_path, data)))["fractions"] == 1


def test_coco_image_whose_only_object_was_skipped_is_not_annotated(tmp_path):
    data = coco(2)
    data["annotations"][1]["category_id"] = 99

    assert said(read_folder(coco_folder(tmp_path, data))) == {"0.png": (True, 1), "1.png": (False, 0)}


# --- Pascal VOC


def test_voc_reader_takes_corners_in_any_order_and_polygons(tmp_path):
    ring = "<x1>1</x1><y1>1</y1><x2>9</x2><y2>1</y2><x3>9</x3><y3>9</y3>"
    points = "<pt><x>1</x><y>2</y></pt><pt><x>9</x><y>2</y></pt><pt><x>9</x><y>9</y></pt>"
    objects = f"<object><name>b</name><polygon>{ring}</polygon><bndbox/></object>"
    objects += f"<object><name>c</name><polygon>{points}</polygon></object></annotation>"
    text = voc_xml("a.png", ("a", 30, 20, 10, 5)).replace("</annotation>", objects)
    put(tmp_path, {"a.png": picture(), "a.xml": text})

    parsed = read_folder(tmp_path)

    assert (codes(parsed), [(shape.kind, shape.bbox) for shape in parsed.shapes()]) == (
        {}, [("bbox", (10, 5, 20, 15)), ("polygon", (1, 1, 8, 8)), ("polygon", (1, 2, 8, 7))],
    )  # fmt: skip


def test_voc_reader_keeps_the_pose_and_attributes_of_cvat(tmp_path):
    text = voc_xml("a.png", ("a", 1, 1, 10, 5), ("a", 1, 1, 10, 9)).replace("<bndbox>", "<pose>Left</pose><bndbox>", 1)
    attribute = "<attributes><attribute><name>shape</name><value>round</value></attribute></attributes></object>"
    put(tmp_path, {"a.png": picture(), "a.xml": text[::-1].replace("</object>"[::-1], attribute[::-1], 1)[::-1]})

    parsed = read_folder(tmp_path)

    assert [one.attributes for one in parsed.shapes()] == [
        {"shape": "bbox", "pose": "Left"}, {"shape": "bbox", "shape_": "round"},
    ]  # fmt: skip


def test_coco_box_with_an_attribute_called_shape_stays_a_box(tmp_path):
    data = coco(1)
    data["annotations"][0]["attributes"] = {"shape": "round", "age": 3}

    (shape,) = read_folder(coco_folder(tmp_path, data, images=1)).shapes()

    assert (shape.kind, shape.attributes) == ("bbox", {"shape": "bbox", "shape_": "round", "age": 3})


def test_voc_lists_name_images_with_an_ending_or_a_space(tmp_path):
    files = {f"JPEGImages/{name}.jpg": picture(kind="JPEG") for name in ("a", "b c", "d")}
    files |= {"Annotations/a.xml": voc_xml("a.jpg", ("x", 1, 1, 5, 5))}
    files |= {"ImageSets/Main/train.txt": "a.jpg\nb c\n", "ImageSets/Main/val.txt": "d  1\n"}

    parsed = read_folder(put(tmp_path, files))

    assert ({image.path: image.split for image in parsed.images}, codes(parsed)) == (
        {"a.jpg": "train", "b c.jpg": "train", "d.jpg": "val"}, {},
    )  # fmt: skip


# --- CVAT and Label Studio


def cvat(*images: str) -> str:
    return f"<annotations>{''.join(images)}</annotations>"


def test_cvat_reader_joins_images_listed_twice_and_keeps_boxes_boxes(tmp_path):
    box = '<box label="cell" xtl="20" ytl="20" xbr="10" ybr="10"><attribute name="shape">round</attribute></box>'
    image = f'<image name="a.png" width="40" height="30">{box}</image>'
    put(tmp_path, {"a.png": picture(), "annotations.xml": cvat(image, image)})

    parsed = read_folder(tmp_path)

    assert (said(parsed), codes(parsed)) == ({"a.png": (True, 2)}, {"duplicate_image": 1})
    assert [shape.attributes for shape in parsed.shapes()] == [{"shape": "bbox", "shape_": "round"}] * 2


def region(number: int = 0, target: str = "image") -> dict[str, Any]:
    value = {"x": 10, "y": 10, "width": 20, "height": 30, "rotation": 0, "rectanglelabels": ["cell"]}
    sizes = {"original_width": 40, "original_height": 30}
    return {"id": f"r{number}", "type": "rectanglelabels", "to_name": target, "value": value, **sizes}


@case_table(
    ("entry", "shapes", "code"),
    [
        ({"annotations": [{"result": [region()], "was_cancelled": True}]}, 0, {"not_submitted": 1}),
        ({"annotations": [], "drafts": [{"result": [region(1), region(2)]}]}, 0, {"not_submitted": 2}),
        ({"annotations": [], "predictions": [{"result": [region()]}]}, 0, {"predictions": 1}),
        ({"completions": [{"result": [region()]}]}, 1, {}),
    ],
)
def test_label_studio_reader_counts_what_was_not_submitted(tmp_path, entry, shapes, code):
    put(tmp_path, {"a.png": picture(), "tasks.json": json.dumps([{"data": {"image": "a.png"}, **entry}])})

    parsed = read_folder(tmp_path)

    assert (said(parsed), codes(parsed)) == ({"a.png": (bool(shapes), shapes)}, code)
    assert detect.is_unlabelled(parsed) == (not shapes)


@pytest.mark.parametrize("alone", ["task", "annotation"])
def test_label_studio_reader_reads_a_file_per_task(tmp_path, alone):
    data = {"image": "a.png"}
    task = {"data": data, "annotations": [{"result": [region()]}]}
    annotation = {"result": [region()], "task": {"data": data}}
    put(tmp_path, {"a.png": picture(), "1.json": json.dumps(task if alone == "task" else annotation)})

    assert said(read_folder(tmp_path)) == {"a.png": (True, 1)}


def test_label_studio_reader_gives_regions_to_the_image_they_are_drawn_on(tmp_path):
    task = {"data": {"left": "a.png", "right": "b.png"}, "annotations": [{"result": [region(1, "right")]}]}
    put(tmp_path, {"a.png": photo(), "b.png": photo(), "tasks.json": json.dumps([task])})

    assert said(read_folder(tmp_path)) == {"a.png": (True, 0), "b.png": (True, 1)}


def test_label_studio_reader_reports_two_tasks_of_one_image(tmp_path):
    task = {"data": {"image": "a.png"}, "annotations": [{"result": [region()]}]}
    put(tmp_path, {"a.png": picture(), "tasks.json": json.dumps([task, task])})

    assert codes(read_folder(tmp_path)) == {"duplicate_image": 1}


def test_labelme_flags_of_an_image_are_counted_and_turned_rectangles_read(tmp_path):
    shape = {"label": "cell", "shape_type": "rotation", "points": [[1, 1], [9, 1], [9, 9], [1, 9]], "difficult": True}
    fields = {"imagePath": "", "imageWidth": 40, "imageHeight": 30}
    put(tmp_path, {f"{name}.png": photo() for name in "ab"})
    put(tmp_path, {"a.json": json.dumps(fields | {"imagePath": "a.png", "shapes": [shape]})})
    put(tmp_path, {"b.json": json.dumps(fields | {"imagePath": "b.png", "shapes": [], "flags": {"good": True}})})

    parsed = read_folder(tmp_path)

    assert (said(parsed), codes(parsed)) == ({"a.png": (True, 1), "b.png": (False, 0)}, {"tag": 1})
    assert [(one.kind, one.attributes) for one in parsed.shapes()] == [("polygon", {"difficult": True})]
