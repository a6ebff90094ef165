"""Data that can be read in two ways: the report names both, and nothing is chosen in silence."""

from __future__ import annotations

import json

import numpy as np
import pytest

from datasets.formats import detect
from datasets.services import imports
from tests.cases import case_table
from tests.datasets.helpers import uploaded, zipped
from tests.datasets.pictures import coco, put, voc_xml
from tests.datasets.read_folders import LINE, codes, drawn, mask_png, notes, photo, read_folder, said, two_objects
from tests.factories import datasets as make

BOX = ("cell", 2, 2, 9, 9)
RED, GREEN = [200, 0, 0], [0, 200, 0]

# --- texts that name classes


@case_table(
    ("files", "count"),
    [
        ({"labels/a.txt": "cell\n", "labels/b.txt": "ring\n"}, 2),
        ({"images/a.txt": "cell\n"}, 1),
        ({"labels/a.txt": "0\n", "labels/b.txt": "1\n", "data.yaml": "names: [cell, ring]\n"}, 2),
        ({"labels/a.txt": "white cell\nring\n", "classes.txt": "white cell\nring\n"}, 1),
        ({"labels.txt": "a.png cell\nb.png ring\n"}, 1),
        ({"train.csv": "a.png,cell\nb.png,ring\n"}, 1),
        ({"classes.txt": "cell\nring\n"}, 0),
        ({"images/a.txt": "a photo of 2 cats\n"}, 0),
        ({"train.txt": "images/a.png\nimages/b.png\n"}, 0),
        ({"pairs.txt": "a.png b.png\n"}, 0),
        ({"images/a.txt": ""}, 0),
    ],
)
def test_texts_that_name_the_class_of_an_image_are_a_problem(tmp_path, files, count):
    parsed = read_folder(put(tmp_path, {"images/a.png": photo(), "images/b.png": photo()} | files))

    assert (codes(parsed), detect.is_unlabelled(parsed)) == ({"class_texts": count} if count else {}, bool(count))


# --- one name, several images


def label_studio(name: str) -> str:
    value = {"x": 1, "y": 1, "width": 20, "height": 20, "rotation": 0, "rectanglelabels": ["cell"]}
    region = {"type": "rectanglelabels", "from_name": "l", "to_name": "i", "original_width": 40, "original_height": 30}
    return json.dumps([{"id": 1, "data": {"image": name}, "annotations": [{"result": [region | {"value": value}]}]}])


NAMED = {
    "coco": {"labels.json": json.dumps(coco(1) | {"images": [{"id": 0, "file_name": "x.png"}]})},
    "voc": {"ann/x.xml": voc_xml("x.png", BOX)},
    "cvat": {"a.xml": '<annotations><version>1.1</version><image name="x.png" width="40" height="30">'
             '<box label="cell" xtl="1" ytl="1" xbr="9" ybr="9"/></image></annotations>'},
    "label-studio": {"tasks.json": label_studio("x.png")},
    "labelme": {"ann/x.json": json.dumps({"imagePath": "x.png", "shapes": [
        {"label": "cell", "points": [[1, 1], [9, 9]], "shape_type": "rectangle"}]})},
    "yolo": {"labels/x.txt": LINE, "data.yaml": "names: [cell]\n"},
    "masks": {"masks/x.png": mask_png(two_objects())},
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_a_name_that_two_images_have_equally_is_reported_and_annotates_neither(tmp_path, name):
    put(tmp_path, {"p/x.jpg" if name == "masks" else "p/x.png": photo()})
    put(tmp_path, {"q/x.jpg" if name == "masks" else "q/x.png": photo()} | NAMED[name])

    parsed = read_folder(tmp_path)

    assert (parsed.format, codes(parsed)["ambiguous_image"]) == (name, 1)
    (problem,) = [one for one in parsed.problems.listed if one.code == "ambiguous_image"]
    assert {"p/x.", "q/x."} <= {word[:4] for word in str(problem.says).split()}
    assert [shapes for _annotated, shapes in said(parsed).values()] == [0, 0]
    assert "missing_image" not in codes(parsed)
    assert detect.is_unlabelled(parsed)


@pytest.mark.parametrize("name", sorted(NAMED.keys() - {"voc", "masks"}))
def test_the_nearer_of_two_images_is_taken_and_the_choice_is_reported(tmp_path, name):
    put(tmp_path, {"p/x.png": photo(), "q/r/s/x.png": photo()} | NAMED[name])

    parsed = read_folder(tmp_path)

    assert codes(parsed)["several_images"] == 1
    assert {path.split("/")[0]: shapes for path, (_annotated, shapes) in said(parsed).items() if shapes} in (
        {"p": 1},
        {"x.png": 1},
    )


def test_yolo_label_file_beside_its_image_is_no_other_images(tmp_path):
    files = {"images/p/x.png": photo(), "images/q/x.png": photo()}
    files |= {"labels/p/x.txt": LINE, "labels/q/x.txt": LINE + "0 0.2 0.2 0.1 0.1\n", "data.yaml": "names: [cell]\n"}

    parsed = read_folder(put(tmp_path, files))

    assert (said(parsed), codes(parsed)) == ({"p/x.png": (True, 1), "q/x.png": (True, 2)}, {})


@case_table(
    ("files", "code"),
    [
        ({"ann/a.xml": "b.png", "ann/b.xml": "a.png"}, {"other_filename": 2}),
        ({"ann/a.xml": "b.png", "ann/b.xml": "b.png"}, {"other_filename": 1}),
        ({"ann/a.xml": "before-renaming.png", "ann/b.xml": "b"}, {}),
        ({"ann/a.xml": "/home/x/images/a.png", "ann/b.xml": "B.PNG"}, {}),
    ],
)
def test_voc_file_that_names_another_existing_image_is_a_problem(tmp_path, files, code):
    put(tmp_path, {"images/a.png": photo(), "images/b.png": photo()})
    put(tmp_path, {name: voc_xml(wanted, BOX) for name, wanted in files.items()})

    parsed = read_folder(tmp_path)

    assert (said(parsed), codes(parsed)) == ({"a.png": (True, 1), "b.png": (True, 1)}, code)


@case_table(
    ("xml", "problem", "note"),
    [
        (["cat/1"], {"class_folders": 1}, {}),
        (["cat/1", "dog/2"], {}, {"class_folders": 1}),
    ],
)
def test_class_folders_beside_xml_files_are_reported(tmp_path, xml, problem, note):
    put(tmp_path, {"cat/1.png": photo(), "dog/2.png": photo()})
    put(tmp_path, {f"{name}.xml": voc_xml(f"{name.split('/')[1]}.png", BOX) for name in xml})

    parsed = read_folder(tmp_path)

    assert (parsed.format, codes(parsed), notes(parsed)) == ("voc", problem, note)


# --- masks of several kinds


def palette(*colours: list[int]) -> list[int]:
    flat = [value for colour in ([0, 0, 0], *colours) for value in colour]
    return flat + [0] * (768 - len(flat))


def in_colour() -> bytes:
    pixels = np.zeros((30, 40, 3), np.uint8)
    pixels[2:12, 2:12], pixels[15:25, 20:30] = RED, GREEN
    return mask_png(pixels)


TABLE = "red:200,0,0::\ngreen:0,200,0::\n"
INDEXED, SWAPPED = mask_png(two_objects(), palette(RED, GREEN)), mask_png(two_objects(), palette(GREEN, RED))


@case_table(
    ("masks", "more", "names", "first", "code", "note"),
    [
        # each mask has an object of the first value at the top left: its class by image
        ([INDEXED, in_colour()], {}, ["#00c800", "#c80000"], ["#c80000", "#c80000"], {}, {}),
        ([INDEXED, in_colour()], {"labelmap.txt": TABLE}, ["green", "red"], ["red", "red"], {}, {}),
        ([INDEXED, SWAPPED], {}, ["#00c800", "#c80000"], ["#c80000", "#00c800"], {}, {"other_palettes": 1}),
        ([INDEXED, SWAPPED], {"labelmap.txt": TABLE}, ["green", "red"], ["red", "green"], {}, {"other_palettes": 1}),
        ([INDEXED, SWAPPED], {"classes.txt": "_background_\ncell\nring\n"}, ["cell", "ring"], ["cell", "cell"],
         {"other_palettes": 1}, {}),
        ([INDEXED, INDEXED], {}, ["1", "2"], ["1", "1"], {}, {}),
        ([mask_png(two_objects()), INDEXED], {"labelmap.txt": TABLE}, ["red", "green"], ["red", "red"], {}, {}),
        ([mask_png(two_objects()), in_colour()], {}, ["1", "2", "#00c800", "#c80000"], ["1", "#c80000"],
         {"mixed_masks": 1}, {}),
        ([mask_png(two_objects()), mask_png(two_objects(np.uint16))], {}, ["1", "2"], ["1", "1"], {}, {}),
        ([mask_png(two_objects()), mask_png(two_objects(np.uint16) * np.uint16(300))], {}, ["1", "2", "300", "600"],
         ["1", "300"], {"mixed_masks": 1}, {}),
    ],
)  # fmt: skip
def test_masks_of_several_kinds_are_each_read_by_their_own_content(tmp_path, masks, more, names, first, code, note):
    for number, mask in enumerate(masks):
        put(tmp_path, {f"images/{number}.jpg": photo(), f"masks/{number}.png": mask})

    parsed = read_folder(put(tmp_path, more))

    called = {info.id: info.name for info in parsed.classes}
    top_left = [min(image.shapes, key=lambda shape: shape.bbox[0]).class_id for image in parsed.images]
    assert sorted(called.values()) == sorted(names)
    assert [called[class_id] for class_id in top_left] == first
    assert (codes(parsed), notes(parsed)) == (code, note)


# --- decisions


@pytest.mark.django_db
@pytest.mark.parametrize("wanted", ["auto", "images"])
def test_import_with_folders_that_may_be_masks_waits_even_if_it_was_agreed_beforehand(alice, wanted):
    cells = make.dataset(alice, "cells")
    files = {f"one/{n}.png": drawn((255, 0, 0), (0, 255, 0), (0, 0, 255)) for n in "ab"}
    files |= {f"two/{n}.png": drawn((255, 255, 255), (0, 0, 0)) for n in "ab"}
    upload = uploaded(alice, zipped(files))
    options = imports.Options(allow_unlabelled=True)
    row = imports.start(dataset=cells, by=alice, upload_id=upload.pk, agreed=True, wanted=wanted, options=options)

    imports.run(row.pk)
    imports.sweep()

    row.refresh_from_db()
    assert (row.state, row.agreed, row.report["undecided"]) == ("reported", False, ["mask_folders"])

    decided = imports.Options(allow_unlabelled=True, mask_folders={"two": "images"})
    imports.recheck(row, options=decided)
    imports.run(row.pk)
    row.refresh_from_db()
    assert (row.state, row.report["undecided"]) == ("reported", [])


@pytest.mark.django_db
def test_import_whose_mask_folders_were_decided_beforehand_does_not_wait(alice):
    cells = make.dataset(alice, "cells")
    files = {f"one/{n}.png": drawn((255, 0, 0), (0, 255, 0), (0, 0, 255)) for n in "ab"}
    files |= {f"two/{n}.png": drawn((255, 255, 255), (0, 0, 0)) for n in "ab"}
    options = imports.Options(mask_folders={"two": "images"})
    row = imports.start(
        dataset=cells, by=alice, upload_id=uploaded(alice, zipped(files)).pk, agreed=True, options=options
    )

    imports.run(row.pk)

    row.refresh_from_db()
    assert row.state == "done"


HALF = voc_xml("a.png", BOX, width=20, height=15)


@case_table(
    ("sizes", "scale"),
    [
        ([(20, 15), (20, 15)], "2"),
        ([(80, 60), (80, 60)], "1/2"),
        ([(20, 15), (40, 30)], ""),  # one is right
        ([(20, 15), (10, 15)], ""),  # the sides differ
        ([(20, 15), (21, 15)], ""),  # nearly
        ([(40, 30), (40, 30)], ""),
    ],
)
@pytest.mark.django_db
def test_sizes_that_all_differ_by_one_exact_factor_are_a_question_and_others_a_problem(alice, sizes, scale):
    cells = make.dataset(alice, f"cells {sizes}")
    files = {f"{n}.png": photo() for n in range(2)}
    files |= {f"{n}.xml": voc_xml(f"{n}.png", BOX, width=size[0], height=size[1]) for n, size in enumerate(sizes)}
    row = imports.start(dataset=cells, by=alice, upload_id=uploaded(alice, zipped(files)).pk, agreed=True)

    imports.run(row.pk)

    row.refresh_from_db()
    wrong = sum(size != (40, 30) for size in sizes)
    assert row.report["problem_counts"].get("other_size", 0) == wrong
    assert (row.report["scale"], row.report["undecided"]) == (scale, ["sizes"] if scale else [])
    assert row.state == ("reported" if scale else "done")


@pytest.mark.django_db
@pytest.mark.parametrize(("choice", "box"), [("scale", [4, 4, 18, 18]), ("keep", [2, 2, 9, 9])])
def test_shapes_are_scaled_or_kept_as_a_user_chooses_on_the_report(as_alice, alice, choice, box):
    cells = make.dataset(alice, "cells")
    files = {"a.png": photo(), "a.xml": HALF}
    row = imports.start(dataset=cells, by=alice, upload_id=uploaded(alice, zipped(files)).pk)
    imports.run(row.pk)
    page = f"/datasets/{cells.pk}/imports/{row.pk}/"
    assert "Scale the shapes by 2" in as_alice.get(page).content.decode()
    assert as_alice.post(f"{page}options/", {"sizes": "odd"}).status_code == 422

    as_alice.post(f"{page}options/", {"sizes": choice})
    imports.run(row.pk)
    row.refresh_from_db()
    assert row.report["undecided"] == []
    imports.commit(row, by=alice)
    imports.run(row.pk)

    row.refresh_from_db()
    (asset,) = row.version.assets.all()
    assert asset.shapes == [[1, "bbox", box]]


@pytest.mark.django_db
def test_api_takes_the_choice_of_sizes_with_the_import_and_reports_where_it_does_not_apply(alice):
    cells = make.dataset(alice, "cells")
    options = imports.Options(sizes="scale")
    upload = uploaded(alice, zipped({"a.png": photo(), "a.xml": voc_xml("a.png", BOX)}))
    row = imports.start(dataset=cells, by=alice, upload_id=upload.pk, agreed=True, options=options)

    imports.run(row.pk)

    row.refresh_from_db()
    assert (row.state, row.report["problem_counts"]) == ("done", {"not_scaled": 1})
