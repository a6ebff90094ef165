"""Edits: stored once, never over another's, refused whole when one means nothing."""

import uuid

import pytest

from annotation.api import edits
from annotation.models import ImageTask, LabelClass, Shape, ShapeEvent
from annotation.services import journal, projects, sets, work
from tests.cases import case_table
from tests.factories import annotation as make
from tests.factories.annotation import put

pytestmark = pytest.mark.postgres


@pytest.fixture
def task(alice, bob):
    """The first image of Alice's, in a project where Bob annotates."""
    made = make.first_task(alice)
    projects.add_member(made.set.project, username="bob", by=alice)
    return made


def apply(task, *events, by):
    return make.apply(task, *events, by=by)


def test_journal_apply_measures_and_counts_a_drawn_shape(task, alice):
    event = put(task)

    outcome = apply(task, event, by=alice)

    shape = Shape.objects.get()
    task.refresh_from_db()
    assert outcome.results == [{"id": event["id"], "shape": event["shape"], "status": "stored", "rev": 1}]
    assert (shape.area, shape.x, shape.y, shape.width, shape.height) == (50, 1, 1, 10, 10)
    assert (shape.created_by, shape.rev) == (alice, 1)
    assert (task.state, task.shape_count, task.rev, outcome.rev) == ("in_progress", 1, 1, 1)


def test_journal_apply_stores_an_edit_once_whose_answer_was_lost(task, alice):
    event = put(task)
    first = apply(task, event, by=alice)

    again = apply(task, event, by=alice)

    assert again.results == first.results
    assert Shape.objects.count() == ShapeEvent.objects.count() == 1
    assert ImageTask.objects.get(pk=task.pk).rev == 1


def test_journal_apply_answers_a_repeated_edit_even_after_later_ones(task, alice):
    drawn = put(task)
    moved = put(task, shape=drawn["shape"], base=1, rings=[[2.0, 2.0, 12.0, 2.0, 12.0, 12.0]])
    apply(task, drawn, moved, by=alice)

    again = apply(task, drawn, moved, by=alice)

    assert [result["rev"] for result in again.results] == [1, 2]
    assert Shape.objects.get().rings == [[2, 2, 12, 2, 12, 12]]


def test_journal_apply_gives_two_people_on_one_shape_both_versions(task, alice, bob):
    drawn = put(task)
    apply(task, drawn, by=alice)
    apply(task, put(task, shape=drawn["shape"], base=1, rings=[[0.0, 0.0, 9.0, 0.0, 9.0, 9.0]]), by=bob)
    late = put(task, shape=drawn["shape"], base=1)
    other = put(task)

    outcome = apply(task, late, other, by=alice)

    conflict, stored = outcome.results
    assert conflict["status"] == "conflict"
    assert conflict["theirs"]["rev"] == 2
    assert conflict["theirs"]["rings"] == [[0, 0, 9, 0, 9, 9]]
    assert stored["status"] == "stored"
    assert Shape.objects.get(uuid=drawn["shape"]).rings == [[0, 0, 9, 0, 9, 9]]


def test_journal_apply_reports_a_shape_deleted_meanwhile_as_conflict(task, alice, bob):
    drawn = put(task)
    apply(task, drawn, by=alice)
    apply(task, {"id": str(uuid.uuid4()), "shape": drawn["shape"], "op": "delete", "base": 1}, by=bob)

    late = apply(task, put(task, shape=drawn["shape"], base=1), by=alice)
    mine = apply(task, put(task, shape=drawn["shape"], base=2), by=alice)

    assert late.results[0]["theirs"]["deleted"] is True
    assert mine.results[0]["rev"] == 3
    assert Shape.objects.get().deleted is False


def test_journal_apply_counts_down_on_deletion_and_up_on_its_undoing(task, alice):
    drawn = put(task)
    apply(task, drawn, by=alice)

    apply(task, {"id": str(uuid.uuid4()), "shape": drawn["shape"], "op": "delete", "base": 1}, by=alice)
    assert ImageTask.objects.get(pk=task.pk).shape_count == 0

    apply(task, put(task, shape=drawn["shape"], base=2), by=alice)
    assert ImageTask.objects.get(pk=task.pk).shape_count == 1


def test_journal_records_every_edit(task, alice, bob):
    drawn = put(task)
    apply(task, drawn, by=alice)
    apply(task, {"id": str(uuid.uuid4()), "shape": drawn["shape"], "op": "delete", "base": 1}, by=bob)

    story = list(ShapeEvent.objects.values_list("op", "rev", "by__username"))
    assert story == [("put", 1, "alice"), ("delete", 2, "bob")]


@case_table(
    ("change", "path"),
    [
        ({"id": "7"}, "events[1].id"),
        ({"shape": None}, "events[1].shape"),
        ({"op": "move"}, "events[1].op"),
        ({"base": -1}, "events[1].base"),
        ({"base": True}, "events[1].base"),
        ({"base": 2**40}, "events[1].base"),
        ({"kind": "circle"}, "events[1].kind"),
        ({"label": 0}, "events[1].label"),
        ({"label": "1"}, "events[1].label"),
        ({"rings": None}, "events[1].rings"),
        ({"rings": [[1, 1, 2, 2, float("nan"), 3]]}, "events[1].rings[0][4]"),
        ({"rings": [[1, 1, 2, 2, float("inf"), 3]]}, "events[1].rings[0][4]"),
        ({"rings": [[1, 1, 2, 2, 41, 3]]}, "events[1].rings[0]"),
        ({"rings": [[1, 1, 2, 2]]}, "events[1].rings[0]"),
        ({"rings": [[1, 1, 9, 9, 9, 1, 1, 9]]}, "events[1].rings[0]"),
        ({"rings": [[1.0, 1.0] * 10_001]}, "events[1].rings[0]"),
        ({"kind": "bbox", "rings": [[1, 1, 9, 2, 9, 9, 1, 9]]}, "events[1].rings"),
    ],
    rollback=True,
)
def test_journal_apply_refuses_all_for_one_bad_edit_and_names_the_place(task, alice, change, path):
    bad = put(task) | change

    with pytest.raises(journal.BadEdit) as refusal:
        apply(task, put(task), bad, by=alice)

    assert refusal.value.facts["path"] == path
    assert Shape.objects.count() == 0


@pytest.mark.parametrize("events", [None, [], {}, "x", [1], [{}] * 501])
def test_edits_read_refuses_odd_requests(events):
    with pytest.raises(journal.BadEdit):
        edits.read({"events": events})


def test_journal_apply_limits_the_shapes_of_an_image(task, alice, monkeypatch):
    monkeypatch.setattr(journal, "MAX_SHAPES", 2)
    apply(task, put(task), put(task), by=alice)

    with pytest.raises(journal.BadEdit):
        apply(task, put(task), by=alice)

    assert Shape.objects.count() == 2


def test_journal_apply_refuses_a_class_of_another_set(task, alice):
    foreign = make.annotation_set(alice, of=make.project(alice, "Other")).labels.first()

    with pytest.raises(journal.BadEdit):
        apply(task, put(task, label=foreign.pk), by=alice)


def test_journal_apply_refuses_shapes_of_another_image(task, alice):
    drawn = put(task)
    apply(task, drawn, by=alice)
    other = task.set.tasks.select_related("asset").get(number=2)

    outcome = apply(other, put(other, shape=drawn["shape"], base=1), by=alice)

    assert outcome.results[0]["theirs"] == {"id": drawn["shape"], "rev": 0, "deleted": True}


def test_journal_apply_brings_a_class_removed_meanwhile_back(task, alice):
    label = task.set.labels.get(name="cat")
    sets.remove_label(label)
    sets.add_label(task.set, name="cat", supercategory="animal")

    apply(task, put(task, label=label.pk), by=alice)

    label.refresh_from_db()
    assert (label.retired, label.name) == (False, "cat (1)")
    assert Shape.objects.get().label == label


def test_label_edit_keeps_the_shapes_of_a_renamed_class(task, alice):
    label = task.set.labels.get(name="cat")
    apply(task, put(task, label=label.pk), by=alice)

    sets.edit_label(label, name="lion", supercategory="animal", shape="polygon", colour="#112233")

    assert Shape.objects.get().label.name == "lion"


def test_label_removal_never_frees_ids_for_other_classes(task):
    last = LabelClass.objects.get(set=task.set, name="box")
    sets.remove_label(last)

    assert sets.add_label(task.set, name="new", supercategory="thing").coco_id == last.coco_id + 1


def test_label_removal_is_refused_for_a_class_in_use(task, alice):
    make.draw(task, alice)

    with pytest.raises(sets.ClassInUse):
        sets.remove_label(task.set.labels.get(name="cat"))


def test_task_submit_ends_an_image_and_wants_empty_ones_confirmed(task, alice):
    with pytest.raises(work.NothingDrawn):
        work.submit(task=task, by=alice)

    assert work.submit(task=task, by=alice, empty=True).empty is True
    make.draw(task, alice)
    task.refresh_from_db()
    assert (task.state, task.empty) == ("submitted", False)


def test_task_that_was_submitted_reopens_when_it_loses_its_last_shape(task, alice):
    drawn = put(task)
    apply(task, drawn, by=alice)
    work.submit(task=task, by=alice)

    apply(task, {"id": str(uuid.uuid4()), "shape": drawn["shape"], "op": "delete", "base": 1}, by=alice)

    assert ImageTask.objects.get(pk=task.pk).state == "in_progress"
