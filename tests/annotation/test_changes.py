"""What a second window hears of an image, and which kinds of shapes a class takes."""

import uuid

import pytest

from annotation.models import LabelClass, Shape
from annotation.services import changes, journal, projects, review, sets, work
from tests.factories import annotation as make
from tests.factories.annotation import apply, put

pytestmark = pytest.mark.postgres
BASE = "/api/v1/annotation/projects/"
CORNERS = [[1.0, 1.0, 9.0, 1.0, 9.0, 9.0, 1.0, 9.0]]


@pytest.fixture
def task(alice, bob):
    """The first image of Alice's, in a project where Bob annotates."""
    made = make.first_task(alice)
    projects.add_member(made.set.project, username="bob", by=alice)
    return made


def gone(drawn: dict, base: int = 1) -> dict:
    return {"id": str(uuid.uuid4()), "shape": drawn["shape"], "op": "delete", "base": base}


# --- what happened since


def test_changes_since_a_revision_are_those_after_it_with_their_authors(task, alice, bob):
    first, second, third = put(task), put(task), put(task)
    apply(task, first, second, by=alice)
    apply(task, gone(second), third, by=bob)
    task.refresh_from_db()

    heard = changes.since(task, 2)

    assert (heard["rev"], heard["state"], heard["by"]) == (4, "in_progress", ["Bob"])
    assert [(shape["id"], shape["rev"], shape["deleted"]) for shape in heard["shapes"]] == [
        (second["shape"], 2, True), (third["shape"], 1, False),
    ]  # fmt: skip
    assert {shape["id"] for shape in changes.since(task, 0)["shapes"]} == {
        event["shape"] for event in (first, second, third)
    }
    assert changes.since(task, 4)["shapes"] == changes.since(task, 99)["shapes"] == []


def test_changes_tell_of_a_verdict_without_any_edit(task, alice, bob):
    make.draw(task, bob)
    work.submit(task=task, by=bob)
    review.judge(task=task, by=alice, verdict="rejected", comment="One is missing")
    task.refresh_from_db()

    heard = changes.since(task, 1)

    assert (heard["state"], heard["remark"], heard["shapes"]) == ("rejected", "One is missing", [])


def test_changes_cost_few_queries_and_hide_from_strangers(api, task, alice, anna, django_assert_max_num_queries):
    make.draw(task, alice, 3)
    url = f"{BASE}{task.set.project_id}/tasks/{task.pk}/changes/"
    api.get(url)

    with django_assert_max_num_queries(6):
        assert len(api.get(url, {"since": "1"}).json()["shapes"]) == 2
    with django_assert_max_num_queries(4):
        assert api.get(url, {"since": "3"}).json()["shapes"] == []
    assert api.get(url, {"since": "x"}).status_code == 400
    api.force_authenticate(anna)
    assert api.get(url).status_code == 404


def test_task_list_of_the_api_begins_at_a_number(api, task):
    url = f"{BASE}{task.set.project_id}/tasks/"

    rows = api.get(url, {"dataset": str(task.set_id), "from": "2"}).json()["results"]

    assert [row["number"] for row in rows] == [2, 3]


# --- kinds of classes


@pytest.fixture
def box(task) -> LabelClass:
    return task.set.labels.get(name="box")


def test_journal_apply_refuses_a_shape_its_class_is_not_drawn_as(task, alice, box):
    wrong = put(task, label=box.pk)

    with pytest.raises(journal.WrongShapeForClass) as refusal:
        apply(task, put(task), wrong, by=alice)

    assert (refusal.value.code, refusal.value.facts["path"]) == ("wrong_shape_for_class", "events[1].kind")
    assert refusal.value.facts["event"] == wrong["id"]
    assert str(refusal.value).startswith("The class box requires the shape Box.")
    assert Shape.objects.count() == 0


def test_journal_apply_takes_any_shape_for_a_class_of_any_shape(task, alice):
    apply(task, put(task), put(task, kind="bbox", rings=CORNERS), by=alice)

    assert set(Shape.objects.values_list("kind", "label__name")) == {("polygon", "cat"), ("bbox", "cat")}


def test_journal_apply_refuses_a_shape_that_moves_to_a_class_drawn_otherwise(task, alice, box):
    drawn = put(task)
    apply(task, drawn, by=alice)

    with pytest.raises(journal.WrongShapeForClass):
        apply(task, put(task, shape=drawn["shape"], base=1, label=box.pk), by=alice)


def test_journal_apply_keeps_shapes_changeable_whose_class_is_drawn_otherwise_now(task, alice, box):
    drawn = put(task, kind="bbox", label=box.pk, rings=CORNERS)
    apply(task, drawn, by=alice)
    sets.edit_label(box, name="box", supercategory="", shape="polygon", colour=box.colour)

    moved = put(
        task, shape=drawn["shape"], base=1, kind="bbox", label=box.pk, rings=[[value + 2 for value in CORNERS[0]]]
    )
    again = put(task, shape=drawn["shape"], base=3, kind="bbox", label=box.pk, rings=CORNERS)
    outcome = apply(task, drawn, moved, gone(drawn, 2), again, by=alice)

    assert [result["rev"] for result in outcome.results] == [1, 2, 3, 4]
    with pytest.raises(journal.WrongShapeForClass):
        apply(task, put(task, kind="bbox", label=box.pk, rings=CORNERS), by=alice)


def test_annotation_api_says_which_shape_a_class_wants(api, task, box):
    url = f"{BASE}{task.set.project_id}/tasks/{task.pk}/shapes/"

    refused = api.post(url, {"events": [put(task, label=box.pk)]}, format="json")

    assert (refused.status_code, refused.json()["code"]) == (400, "wrong_shape_for_class")
    labels = f"{BASE}{task.set.project_id}/datasets/{task.set_id}/labels/"
    made = api.post(labels, {"name": "cell", "shape": "any"}, format="json")
    assert (made.status_code, made.json()["shape"]) == (201, "any")


def test_class_form_offers_any_shape(as_alice, task):
    url = f"/annotation/projects/{task.set.project_id}/datasets/{task.set_id}/classes/"

    made = as_alice.post(url, {"name": "cell", "supercategory": "", "shape": "any"})

    assert made.status_code == 302
    assert "Any shape" in as_alice.get(url).content.decode()
