"""Models side by side: their facts, and their evaluations on the same data."""

import pytest
from django.urls import reverse

from inference.evaluation import model_comparison
from inference.registry.models import ModelVersion
from tests.factories import models as factory
from tests.inference import judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def versions(alice, tmp_path):
    return [factory.model_version(alice, tmp_path, name=name) for name in ("small", "large")]


def page(client, versions):
    return client.get(reverse("inference:models-compare"), {"model": [version.model_id for version in versions]})


def test_evaluations_of_both_models_on_one_split_are_compared(alice, as_alice, versions, tmp_path):
    data = judged.dataset_version(alice, tmp_path / "data")
    judged.judged(alice, versions[0], data)  # an older one
    made = [judged.judged(alice, version, data) for version in versions]

    (shared,) = model_comparison.shared_evaluations(alice, versions)
    html = page(as_alice, versions).content.decode()

    assert shared.evaluations == [row.pk for row in made]
    assert shared.is_complete
    link = "".join(f"evaluation={row.pk}&amp;" for row in made)
    assert f'class="btn btn-primary" href="/evaluations/compare/?{link}"' in html
    assert all(str(version) in html for version in versions)


def test_evaluations_on_different_splits_are_not_compared(alice, versions, tmp_path):
    data = judged.dataset_version(alice, tmp_path / "data")
    first = judged.judged(alice, versions[0], data)
    judged.judged(alice, versions[1], data)
    type(first).objects.filter(pk=first.pk).update(split="val")

    assert model_comparison.shared_evaluations(alice, versions) == []


def test_models_without_common_evaluation_lead_to_one(as_alice, versions):
    html = page(as_alice, versions).content.decode()

    assert all(f'href="/evaluations/new/?model_version={version.pk}"' in html for version in versions)
    assert "btn-primary" not in html.partition('id="content"')[2].partition("</main>")[0]


def test_newest_version_in_use_is_compared(alice, versions):
    older = versions[0]
    archived = ModelVersion.objects.create(
        model=older.model, number=older.number + 1, task=older.task, source=older.source, stage="archived"
    )

    chosen = model_comparison.select_versions(alice, [version.model_id for version in reversed(versions)])

    assert chosen == [versions[1], older]
    assert archived not in chosen


def test_models_that_a_user_cannot_see_are_not_compared(as_alice, as_bob, as_anna, versions):
    assert page(as_alice, versions).status_code == 200
    assert page(as_bob, versions).status_code == 404
    assert page(as_anna, versions).status_code == 403
    assert page(as_alice, []).status_code in (400, 422)


def test_list_of_models_compares_and_sorts_by_the_key_metric(as_alice, versions):
    for version, value in zip(versions, (0.4, 0.6), strict=True):
        ModelVersion.objects.filter(pk=version.pk).update(
            metrics={"val/ap": 0.1, "val/ap50": value}, dataset_label="cells v1"
        )

    html = as_alice.get("/models/", {"ordering": "-figure"}).content.decode()

    assert html.index("0.600") < html.index("0.400")
    assert "AP50 · val" in html
    assert "cells v1" in html
    assert "/models/compare/" in html
