"""The page of a dataset links the annotation projects, trainings and evaluations that a reader may see."""

import pytest
from django.urls import reverse

from annotation.models import AnnotationProject, AnnotationSet
from datasets.services import related
from tests.factories import models, training
from tests.inference import judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def data(alice, tmp_path):
    return judged.dataset_version(alice, tmp_path / "data")


def test_dataset_leads_to_what_was_made_with_it(alice, as_alice, data, tmp_path, cluster):
    training.training(alice, data=data, name="run", state="succeeded", preset="detect")
    judged.judged(alice, models.model_version(alice, tmp_path), data)
    project = AnnotationProject.objects.create(name="Blood", owner=alice)
    AnnotationSet.objects.create(project=project, source=data, name="cells")
    name = data.dataset.name

    html = as_alice.get(reverse("datasets:related", args=[data.dataset_id])).content.decode()

    assert f'href="/training/?q={name}">1 training</a>' in html
    assert f'href="/evaluations/?q={name}">1 evaluation</a>' in html
    assert f'href="/annotation/projects/{project.pk}/">Blood</a>' in html
    page = as_alice.get(f"/datasets/{data.dataset_id}/").content.decode()
    assert f'hx-get="/datasets/{data.dataset_id}/related/"' in page


def test_objects_that_a_reader_cannot_see_are_not_counted(alice, bob, as_bob, as_alice, data):
    training.training(alice, data=data, name="run", state="succeeded", preset="detect")
    type(data.dataset).objects.filter(pk=data.dataset_id).update(visibility="public")

    assert related.list_related(bob, data.dataset) == []
    assert "h-related" not in as_bob.get(reverse("datasets:related", args=[data.dataset_id])).content.decode()


def test_private_dataset_is_not_found(as_bob, data):
    assert as_bob.get(reverse("datasets:related", args=[data.dataset_id])).status_code == 404
