"""Conversions: a right file, once at a time, that survives its worker."""

import hashlib
import json
from datetime import timedelta

import pytest
from django.utils.timezone import now

from aiplatform.lib import disk
from annotation.models import Export
from annotation.services import coco, exports, listing, work
from datasets.services import datasets, versions
from tests.factories import annotation as make
from tests.factories.annotation import converted


@pytest.fixture
def annotated(alice):
    made = make.annotation_set(alice)
    task = made.tasks.select_related("asset").get(number=2)
    box = made.labels.get(name="box").pk
    events = [
        make.put(task),
        make.put(task, kind="bbox", label=box, rings=[[5, 5, 15, 5, 15, 25, 5, 25]]),
        make.put(task),
    ]
    make.apply(task, *events, by=alice)
    gone = {"id": events[0]["shape"], "shape": events[0]["shape"], "op": "delete", "base": 1}
    make.apply(task, gone, by=alice)
    work.submit(task=task, by=alice)
    return made


def test_coco_export_holds_every_living_shape(annotated, alice):
    export = converted(annotated, alice, make_version=False)

    data = json.loads(export.file.read_text())
    assert (export.state, export.images, export.annotations, export.left_out) == ("success", 1, 2, 0)
    assert export.sha256 == hashlib.sha256(export.file.read_bytes()).hexdigest()
    assert [(c["id"], c["name"]) for c in data["categories"]] == [(1, "cat"), (2, "box")]
    box, triangle = data["annotations"]
    assert (box["category_id"], box["attributes"], box["bbox"], box["area"]) == (
        2,
        {"shape": "bbox"},
        [5, 5, 10, 20],
        200,
    )
    assert triangle["category_id"] == 1
    assert export.version is None


def test_coco_export_lists_the_images_somebody_looked_at(annotated, alice):
    first, _drawn, third = annotated.tasks.select_related("asset").order_by("number")
    work.submit(task=first, by=alice, empty=True)  # nothing is on it
    before = json.loads(converted(annotated, alice, make_version=False).file.read_text())
    make.draw(third, alice)  # in progress
    after = json.loads(converted(annotated, alice, make_version=False).file.read_text())

    assert [image["file_name"] for image in before["images"]] == ["a/0.png", "a/1.png"]
    assert [image["file_name"] for image in after["images"]] == ["a/0.png", "a/1.png", "a/2.png"]


def test_coco_export_keeps_ids_in_the_next_conversion(annotated, alice):
    first = json.loads(converted(annotated, alice, make_version=False).file.read_text())
    make.draw(annotated.tasks.select_related("asset").get(number=1), alice)
    second = json.loads(converted(annotated, alice, make_version=False).file.read_text())

    assert second["images"][1:] == first["images"]
    assert second["annotations"][:2] == first["annotations"]
    assert len(second["annotations"]) == 3


def test_coco_export_makes_a_version_a_training_can_pin(annotated, alice):
    export = converted(annotated, alice)

    version = export.version
    assert (version.annotated, version.task, version.dataset) == (True, "detection", annotated.source.dataset)
    assert (version.parent, version.annotation_count, version.image_count) == (annotated.source, 2, 3)
    assert [entry["name"] for entry in version.classes] == ["cat", "box"]


def test_coco_export_makes_no_second_version_after_its_worker_died(annotated, alice):
    export = converted(annotated, alice)
    Export.objects.filter(pk=export.pk).update(
        state="converting", version=None, renewed_at=now() - timedelta(minutes=5)
    )

    exports.convert(export.pk)

    export.refresh_from_db()
    assert export.version is not None
    assert annotated.source.dataset.versions.filter(annotated=True).count() == 1


def test_coco_export_runs_once_at_a_time(annotated, alice):
    exports.start(annotation_set=annotated, by=alice)

    with pytest.raises(exports.AlreadyConverting):
        exports.start(annotation_set=annotated, by=alice)


def test_coco_export_that_lives_is_left_alone_and_a_silent_one_taken_over(annotated, alice):
    export = exports.start(annotation_set=annotated, by=alice, make_version=False)
    Export.objects.filter(pk=export.pk).update(state="converting", holder="another", renewed_at=now(), tries=1)

    exports.convert(export.pk)
    export.refresh_from_db()
    assert export.state == "converting"

    Export.objects.filter(pk=export.pk).update(renewed_at=now() - timedelta(minutes=5))
    exports.convert(export.pk)
    export.refresh_from_db()
    assert (export.state, export.tries) == ("success", 2)


def test_coco_export_that_was_taken_over_in_the_middle_leaves_no_trace(annotated, alice, monkeypatch):
    export = exports.start(annotation_set=annotated, by=alice)

    def write(*given, really=coco.write, **more):
        report = really(*given, **more)
        Export.objects.update(holder="another", tries=2)
        return report

    monkeypatch.setattr(coco, "write", write)
    exports.convert(export.pk)

    export.refresh_from_db()
    assert (export.state, export.holder, export.sha256, export.version) == ("converting", "another", "", None)
    assert not annotated.source.dataset.versions.filter(annotated=True).exists()


def test_coco_export_sweep_sends_what_was_lost_and_gives_up_after_five(
    annotated, alice, sent, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        export = exports.start(annotation_set=annotated, by=alice)
    assert sent == [("annotation.convert", {"export_id": export.pk})]
    Export.objects.filter(pk=export.pk).update(
        state="converting", holder="dead", renewed_at=now() - timedelta(minutes=5), tries=1
    )
    with django_capture_on_commit_callbacks(execute=True):
        exports.sweep()
    assert sent[1:] == [("annotation.convert", {"export_id": export.pk})]

    Export.objects.filter(pk=export.pk).update(tries=5)
    exports.sweep()
    export.refresh_from_db()
    assert export.state == "failed"


def test_coco_export_that_fails_says_why(annotated, alice, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exports.coco, "write", full)

    export = converted(annotated, alice)

    assert export.state == "failed"
    assert export.detail == disk.sentence()
    assert list(exports.folder(annotated).glob("*.part")) == []


def test_coco_export_fails_with_a_refused_version(annotated, alice, monkeypatch):
    def refuse(**kwargs):
        raise versions.AnnotationsRefused("no")

    monkeypatch.setattr(versions, "create_from_coco", refuse)

    assert converted(annotated, alice).state == "failed"


def test_conversion_into_a_new_dataset_leaves_the_source_as_it_is(annotated, alice):
    export = converted(annotated, alice, new_dataset="labelled")

    version = export.version
    assert (version.dataset.name, version.dataset.owner, version.number) == ("labelled", alice, 1)
    assert (version.parent, version.annotation_count) == (annotated.source, 2)
    assert annotated.source.dataset.versions.count() == 1


def test_conversion_refuses_a_taken_name_and_frees_one_it_could_not_fill(annotated, alice, monkeypatch):
    with pytest.raises(datasets.NameTaken):
        exports.start(annotation_set=annotated, by=alice, new_dataset=annotated.source.dataset.name)
    assert not Export.objects.exists()

    def refuse(**_given):
        raise versions.AnnotationsRefused("no")

    monkeypatch.setattr(versions, "create_from_coco", refuse)
    assert converted(annotated, alice, new_dataset="labelled").state == "failed"
    monkeypatch.undo()
    assert converted(annotated, alice, new_dataset="labelled").version.dataset.name == "labelled"


def test_a_later_file_does_not_hide_the_version_of_an_earlier_conversion(annotated, alice, as_alice):
    version = converted(annotated, alice).version
    converted(annotated, alice, target="voc", make_version=False)

    shown = listing.next_steps(annotated, alice)
    page = as_alice.get(f"/annotation/projects/{annotated.project_id}/datasets/{annotated.pk}/").content.decode()

    assert (shown["conversion"].target, shown["version"]) == ("voc", version)
    assert "train" in [offer.name for offer in shown["offers"]]
    assert f'href="/datasets/{version.dataset_id}/v{version.number}/"' in page


def test_conversion_into_a_new_dataset_by_api(annotated, api):
    where = f"/api/v1/annotation/projects/{annotated.project_id}/exports/"
    answer = api.post(where, {"dataset": annotated.pk, "new_dataset": "labelled"}, format="json")

    assert answer.status_code == 202
    assert Export.objects.get().dataset.name == "labelled"
