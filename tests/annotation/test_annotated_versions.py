"""A project takes any version: classes keep their ids, shapes can be changed, what nobody touched leaves as it came."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from annotation.models import AnnotationSet, ImageTask, LabelClass, Shape
from annotation.services import sets, task_creation
from datasets.shapes import geometry
from datasets.shapes.rle import outlines, rle_runs
from tests import public_data
from tests.datasets.helpers import imported, zipped, zipped_folder
from tests.datasets.pictures import picture
from tests.factories import annotation as make
from tests.factories import datasets as data
from tests.factories.annotation import converted

pytestmark = pytest.mark.django_db

#: 5 rows × 6 columns: a ring of pixels around a hole, and a pixel that touches it at a corner only.
RING = ["......", ".###..", ".#.#..", ".###..", "....#."]


def rle(rows: list[str]) -> dict[str, object]:
    """Uncompressed COCO runs of a picture in characters, column by column."""
    flat = [rows[y][x] == "#" for x in range(len(rows[0])) for y in range(len(rows))]
    runs, now = [0], False
    for pixel in flat:
        if pixel != now:
            runs.append(0)
            now = pixel
        runs[-1] += 1
    return {"size": [len(rows), len(rows[0])], "counts": runs}


def coco_file() -> dict[str, object]:
    """Ids with gaps, class 0, a name twice, a shape in two parts, a stated area, a crowd, a foreign attribute."""
    return {
        "images": [
            {"id": 70, "file_name": "b.png", "width": 40, "height": 30},
            {"id": 12, "file_name": "a.png", "width": 40, "height": 30},
            {"id": 31, "file_name": "c.png", "width": 6, "height": 5},
        ],
        "categories": [
            {"id": 0, "name": "cell", "supercategory": "blood"},
            {"id": 90, "name": "plate", "supercategory": ""},
            {"id": 7, "name": "cell", "supercategory": ""},
        ],
        "annotations": [
            {"id": 500, "image_id": 12, "category_id": 0, "bbox": [1, 2, 10.25, 8], "iscrowd": 0},
            {"id": 3, "image_id": 12, "category_id": 90, "segmentation": [[1, 1, 9, 1, 9, 9], [20, 20, 30, 20, 25, 29]],
             "area": 61.5, "bbox": [1, 1, 29, 28], "iscrowd": 0, "attributes": {"doubtful": True}},
            {"id": 41, "image_id": 31, "category_id": 7, "segmentation": rle(RING), "area": 9, "bbox": [1, 1, 4, 4],
             "iscrowd": 1},
        ],
    }  # fmt: skip


@pytest.fixture
def version(alice):
    files = {"a.png": picture(), "b.png": picture(colour=(9, 9, 9)), "c.png": picture(6, 5)}
    archive = zipped({**files, "instances.json": json.dumps(coco_file())})
    return imported(data.dataset(alice), archive).version


def taken(version, alice, **fields):
    return sets.create(project=make.project(alice), name="again", source=version, by=alice, **fields)


def as_file(path: Path) -> dict[str, list]:
    """A COCO file without order."""
    read = json.loads(path.read_text())
    return {key: sorted(read[key], key=lambda entry: entry["id"]) for key in ("images", "categories", "annotations")}


def test_annotated_version_gives_a_project_its_classes_with_their_ids(version, alice):
    made = taken(version, alice, labels=[{"name": "plate"}, {"name": "dust"}])

    labels = list(made.labels.order_by("coco_id").values_list("coco_id", "name", "supercategory", "shape"))
    assert labels == [
        (0, "cell", "blood", "bbox"),
        (7, "cell (7)", "", "polygon"),
        (90, "plate", "", "polygon"),
        (91, "dust", "", "polygon"),
    ]
    assert [(task.asset.path, task.shape_count, task.state) for task in made.tasks.all()] == [
        ("b.png", 0, "new"),
        ("a.png", 2, "new"),
        ("c.png", 1, "new"),
    ]


def test_annotated_version_leaves_an_untouched_project_as_it_came(version, alice):
    made = taken(version, alice)

    export = converted(made, alice)

    before, after = as_file(version.path / "annotations.json"), as_file(export.file)
    renamed = {entry["id"]: entry for entry in after["categories"]}
    assert (export.state, export.left_out, export.annotations) == ("success", 0, 3)
    assert [entry["id"] for entry in after["categories"]] == [0, 7, 90]
    assert renamed[7]["name"] == "cell (7)"
    assert [(i["id"], i["file_name"]) for i in after["images"]] == [(12, "a.png"), (31, "c.png"), (70, "b.png")]
    assert after["annotations"] == before["annotations"]
    assert as_file(export.version.path / "annotations.json")["annotations"] == before["annotations"]


def test_annotated_version_scores_its_untouched_project_as_perfect(version, alice):
    export = converted(taken(version, alice), alice, make_version=False)
    truth = COCO(str(version.path / "annotations.json"))
    found = truth.loadRes([{**a, "score": 0.9} for a in json.loads(export.file.read_text())["annotations"]])

    judge = COCOeval(truth, found, "segm")
    judge.evaluate()
    judge.accumulate()
    judge.summarize()

    assert judge.stats[0] == pytest.approx(1.0)


def test_annotated_version_lets_its_shapes_be_changed_and_new_ones_count_on(version, alice):
    made = taken(version, alice)
    task = made.tasks.select_related("asset").get(asset__path="a.png")
    shape = Shape.objects.get(task=task, coco_id=3)
    corner = [[1.0, 1.0, 5.0, 1.0, 5.0, 5.0]]
    moved = make.put(task, shape=str(shape.uuid), base=1, label=shape.label_id, rings=corner)
    drawn = make.put(task, label=made.labels.get(coco_id=90).pk)

    outcome = make.apply(task, moved, drawn, by=alice)

    assert [result["status"] for result in outcome.results] == ["stored", "stored"]
    entries = {entry["id"]: entry for entry in as_file(converted(made, alice).file)["annotations"]}
    assert sorted(entries)[:3] == [3, 41, 500]
    assert len(entries) == 4
    assert max(entries) > 500
    assert (entries[3]["segmentation"], entries[3]["area"]) == (corner, 8)
    assert entries[3]["attributes"] == {"doubtful": True}


def test_annotated_version_gives_keypoints_and_foreign_fields_back(alice):
    person = {"keypoints": ["nose", "ear"], "skeleton": [[1, 2]]}
    beside = {"keypoints": [5, 6, 2, 9, 6, 1], "num_keypoints": 2, "track": "t7"}
    file = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 3, "name": "person", "supercategory": ""} | person],
        "annotations": [
            {"id": n, "image_id": 1, "category_id": 3, "bbox": [2 * n, 2, 10, 8]} | beside for n in (1, 2, 3)
        ],
    }
    version = imported(data.dataset(alice), zipped({"a.png": picture(), "a.json": json.dumps(file)})).version
    made = taken(version, alice)
    task = made.tasks.select_related("asset").get()
    changed, deleted = (Shape.objects.get(task=task, coco_id=number) for number in (2, 3))
    wider = [[4.0, 2.0, 20.0, 2.0, 20.0, 10.0, 4.0, 10.0]]

    outcome = make.apply(
        task,
        make.put(task, shape=str(changed.uuid), base=1, label=changed.label_id, kind="bbox", rings=wider),
        {"id": str(uuid.uuid4()), "shape": str(deleted.uuid), "op": "delete", "base": 1},
        by=alice,
    )

    assert [result["status"] for result in outcome.results] == ["stored", "stored"]
    before = as_file(version.path / "annotations.json")
    after = as_file(converted(made, alice).version.path / "annotations.json")
    assert after["categories"] == before["categories"]
    assert after["categories"][0].items() >= person.items()
    assert [entry["id"] for entry in after["annotations"]] == [1, 2]
    assert after["annotations"][0] == before["annotations"][0]
    assert after["annotations"][1].items() >= ({"bbox": [4, 2, 16, 8], "area": 128} | beside).items()


def test_annotated_version_turns_masks_into_outlines_until_somebody_changes_them(version, alice):
    made = taken(version, alice)
    task = made.tasks.select_related("asset").get(asset__path="c.png")
    shape = task.shapes.get()
    assert shape.kind == "polygon"
    assert sorted(map(geometry.signed_area, shape.rings)) == [1, 9]  # the corner pixel, and the ring without its hole

    make.apply(task, make.put(task, shape=str(shape.uuid), base=1, label=shape.label_id, rings=shape.rings), by=alice)

    entry = next(e for e in as_file(converted(made, alice).file)["annotations"] if e["id"] == 41)
    assert (entry["segmentation"], entry["area"], entry["iscrowd"]) == (shape.rings, 10, 1)


def test_annotated_version_can_be_drawn_anew(version, alice):
    made = taken(version, alice, with_shapes=False)

    assert (made.filled, made.labels.count(), made.tasks.count()) == (True, 3, 3)
    assert not Shape.objects.filter(task__set=made).exists()


def test_version_of_whole_image_classes_gives_a_project_its_classes(alice):
    made = taken(data.version(data.dataset(alice), task="classification"), alice)

    assert list(made.labels.values_list("coco_id", "name")) == [(1, "cell"), (2, "plate")]
    assert made.tasks.count() == 3


def test_images_that_the_annotations_do_not_list_come_too(version, alice):
    """A version may hold images nobody annotated; its annotations.json leaves them out."""
    notes = version.path / "annotations.json"
    notes.write_text("".join(line for line in notes.read_text().splitlines(keepends=True) if '"b.png"' not in line))

    made = taken(version, alice)

    assert list(made.tasks.values_list("asset__path", "coco_id")) == [("b.png", None), ("a.png", 12), ("c.png", 31)]
    before = as_file(converted(made, alice, make_version=False).file)["images"]
    drawn = made.tasks.select_related("asset").get(asset__path="b.png")
    make.apply(
        drawn, make.put(drawn, label=made.labels.first().pk, kind="bbox", rings=[[1, 1, 9, 1, 9, 9, 1, 9]]), by=alice
    )
    after = as_file(converted(made, alice, make_version=False).file)["images"]
    assert [image["file_name"] for image in before] == ["a.png", "c.png"]
    assert [image["file_name"] for image in after] == ["a.png", "c.png", "b.png"]


def test_filling_goes_on_where_a_worker_died(alice, monkeypatch):
    monkeypatch.setattr(sets, "AT_ONCE", 2)
    monkeypatch.setattr(task_creation, "BATCH", 8)  # two images at a time
    made = taken(data.version(data.dataset(alice), images=7), alice)
    assert not made.filled
    with monkeypatch.context() as patch:
        patch.setattr(ImageTask.objects, "bulk_create", _dying_at(ImageTask.objects.bulk_create, 3))
        with pytest.raises(KeyboardInterrupt):
            task_creation.create_tasks(made.pk)
    assert (made.tasks.count(), Shape.objects.filter(task__set=made).count()) == (4, 4)

    task_creation.create_tasks(made.pk)

    made.refresh_from_db()
    assert made.filled
    assert list(made.tasks.values_list("number", "coco_id", "shape_count")) == [(n, n, 1) for n in range(1, 8)]
    assert sorted(Shape.objects.filter(task__set=made).values_list("coco_id", flat=True)) == list(range(1, 8))


def _dying_at(really, call):
    calls = iter(range(1, 100))

    def bulk_create(rows, **more):
        if next(calls) == call:
            raise KeyboardInterrupt
        return really(rows, **more)

    return bulk_create


def test_filling_asks_little_of_the_database(alice, django_assert_max_num_queries):
    source = data.version(data.dataset(alice), images=60)
    made = sets.create(project=make.project(alice), name="again", source=source, by=alice, with_shapes=False)
    made.tasks.all().delete()
    made.filled, made.with_shapes = False, True
    made.save()

    with django_assert_max_num_queries(14):
        task_creation.create_tasks(made.pk)

    assert Shape.objects.filter(task__set=made).count() == 60


def test_outlines_of_a_mask_enclose_its_pixels():
    rows = ["##..", "##..", "..##", "#..."]

    rings = outlines(*rle_runs(rle(rows)))

    assert sorted(map(geometry.signed_area, rings)) == [1, 2, 4]
    assert [0.0, 0.0, 2.0, 0.0, 2.0, 2.0, 0.0, 2.0] in [_from_the_top_left(ring) for ring in rings]


def _from_the_top_left(ring):
    points = list(zip(ring[::2], ring[1::2], strict=True))
    first = points.index(min(points))
    return [value for point in points[first:] + points[:first] for value in point]


def test_version_taken_by_api_and_by_page(version, as_alice, alice):
    project = make.project(alice)
    api = as_alice.post(
        f"/api/v1/annotation/projects/{project.pk}/datasets/",
        {"name": "by api", "source": version.pk},
        content_type="application/json",
    )
    rows = {"labels-TOTAL_FORMS": 0, "labels-INITIAL_FORMS": 0}
    page = as_alice.post(
        f"/annotation/projects/{project.pk}/datasets/new/",
        {
            "name": "by page",
            "visibility": "private",
            "kind": "image",
            "source": version.pk,
            "with_shapes": "on",
            **rows,
        },
    )

    assert (api.status_code, page.status_code) == (201, 302)
    assert {made.name: Shape.objects.filter(task__set=made).count() for made in project.sets.all()} == {
        "by api": 3,
        "by page": 3,
    }
    assert LabelClass.objects.filter(set__project=project, coco_id=90).count() == 2


def test_project_begins_with_a_version_in_one_step(version, as_alice, as_bob, alice):
    where = f"/annotation/projects/new/?source={version.pk}"
    other = make.project(alice, "Others")

    page = as_alice.get(where)
    made = as_alice.post(where, {"name": "cells, again", "with_shapes": "on"})
    strangers = as_bob.get(where)

    assert page.context["form"]["name"].value() == "cells"
    assert f"/annotation/projects/{other.pk}/datasets/new/?source={version.pk}" in page.content.decode()
    row = AnnotationSet.objects.get()
    assert (row.project.name, row.name, row.source, row.with_shapes) == ("cells, again", "cells v1", version, True)
    assert made.headers["Location"] == f"/annotation/projects/{row.project_id}/datasets/{row.pk}/"
    assert strangers.status_code == 404


def test_project_begins_with_plain_images_and_the_classes_typed_beside(as_alice, alice):
    version = data.version(data.dataset(alice), task="none")
    where = f"/annotation/projects/new/?source={version.pk}"

    refused = as_alice.post(where, {"name": "cells", "classes": f"red, {'x' * 51}"})
    made = as_alice.post(where, {"name": "cells", "classes": "red cell, white  cell，plate,,red cell", "shape": "bbox"})

    assert refused.status_code == 422
    assert "…” is longer. Separate classes by commas." in refused.content.decode()
    row = AnnotationSet.objects.get()
    assert list(row.labels.order_by("coco_id").values_list("name", "shape")) == [
        ("red cell", "bbox"), ("white cell", "bbox"), ("plate", "bbox"),
    ]  # fmt: skip
    assert made.headers["Location"] == f"/annotation/projects/{row.project_id}/datasets/{row.pk}/"


def test_real_polygons_go_through_a_project_without_a_change(alice):
    version = imported(data.dataset(alice), zipped_folder(public_data.need("nuts", "coco"))).version

    export = converted(taken(version, alice), alice, make_version=False)

    before, after = as_file(version.path / "annotations.json"), as_file(export.file)
    assert export.annotations == 165
    assert after["categories"] == before["categories"]
    assert after["annotations"] == before["annotations"]
