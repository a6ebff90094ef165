"""What an annotator meets first: a set that is still prepared, the class that is drawn, the state of an image."""

import pytest

from annotation.models import AnnotationSet, ImageTask
from annotation.services import default_labels, sets
from tests.factories import annotation as make
from tests.inference.seeing import annotated

pytestmark = pytest.mark.django_db


def test_set_that_is_prepared_opens_by_itself(as_alice, alice):
    task = make.first_task(alice)
    page = f"/annotation/projects/{task.set.project_id}/datasets/{task.set_id}/"
    AnnotationSet.objects.update(filled=False)
    ImageTask.objects.all().delete()

    first = as_alice.get(page).content.decode()
    polled = as_alice.get(f"{page}?preparing=1", headers={"HX-Request": "true"})
    AnnotationSet.objects.update(filled=True)
    ready = as_alice.get(f"{page}?preparing=1", headers={"HX-Request": "true"})

    assert 'hx-trigger="every 2s"' in first
    assert "Reload the page" not in first
    assert "HX-Refresh" not in polled
    assert 'hx-get="?preparing=1"' in polled.content.decode()
    assert ready["HX-Refresh"] == "true"


def test_class_that_is_drawn_first_is_the_last_used_one_else_the_most_frequent(alice, bob):
    task = make.first_task(alice)
    cat, other = task.set.labels.get(name="cat"), sets.add_label(task.set, name="other", shape="any")

    nothing = default_labels.for_user(task.set, alice)
    for label in (cat, cat, other):
        make.apply(task, make.put(task, label=label.pk), by=alice)

    assert nothing is None
    assert default_labels.for_user(task.set, alice) == other.pk
    assert default_labels.for_user(task.set, bob) == cat.pk


def test_class_of_a_new_set_is_the_one_used_in_the_project_or_the_most_frequent_of_the_version(alice, bob):
    version = annotated(alice)
    counts = {"train": {str(item["id"]): 1 + place for place, item in enumerate(version.classes)}}
    version.figures = {"objects": counts}
    version.save()
    made = sets.create_with_project(owner=alice, source=version, name="again")
    most = made.labels.get(coco_id=version.classes[-1]["id"])

    assert default_labels.for_user(made, alice) == most.pk

    task = made.tasks.first()
    made.labels.update(shape="any")
    other = made.labels.exclude(pk=most.pk).first()
    make.apply(task, make.put(task, label=other.pk), by=alice)
    later = sets.create(project=made.project, name="later", source=version, by=alice)
    assert later.labels.get(pk=default_labels.for_user(later, alice)).name == other.name


def test_image_is_in_progress_from_the_first_edit_and_not_from_opening_it(as_alice, alice):
    task = make.first_task(alice)
    project = task.set.project_id

    as_alice.get(f"/annotation/projects/{project}/tasks/{task.pk}/")
    opened = as_alice.get(f"/api/v1/annotation/projects/{project}/tasks/{task.pk}/").json()["state"]
    make.draw(task, alice)

    assert opened == "new"
    task.refresh_from_db()
    assert task.state == "in_progress"
