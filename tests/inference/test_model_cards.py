"""The card of a model: a draft from its facts until a user writes one."""

import pytest
from django.urls import reverse

from inference.registry import card_drafts
from inference.registry.models import Model, ModelVersion
from tests.factories import models as factory
from tests.inference import judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(alice, tmp_path):
    version = factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")
    ModelVersion.objects.filter(pk=version.pk).update(
        dataset_version=data, dataset_label=str(data), classes=[{"id": 1, "name": "a_b"}, {"id": 2, "name": "c"}],
        metrics={"val/ap50": 0.5, "val/ap50/a_b": 0.3, "val/ap50/c": 0.7},
    )  # fmt: skip
    version.refresh_from_db()
    return version


def test_draft_states_classes_data_and_the_weakest_classes(version):
    draft = card_drafts.draft(version, version.dataset_version)

    assert draft["purpose"] == r"Detection of 2 classes in images: a\_b, c."
    assert f"{version.dataset_version.image_count} images" in draft["data"]
    assert draft["limits"] == r"Lowest AP50 · val: a\_b (0.300), c (0.700)."


def test_draft_counts_no_images_of_a_dataset_that_the_reader_cannot_see(version, as_bob):
    Model.objects.filter(pk=version.model_id).update(visibility="public")

    html = as_bob.get(f"/models/{version.model_id}/").content.decode()

    assert "Trained on" in html
    assert " images (" not in html


def test_page_shows_the_draft_until_a_card_is_saved(version, as_alice):
    page, form = f"/models/{version.model_id}/", reverse("inference:model-card", args=[version.model_id])
    assert ">Draft<" in as_alice.get(page).content.decode()
    assert "Detection of 2 classes" in as_alice.get(form).content.decode()

    as_alice.post(form, {"purpose": "Counts *cells*."})

    html = as_alice.get(page).content.decode()
    assert "Counts <em>cells</em>." in html
    assert ">Draft<" not in html
    assert "Detection of 2 classes" not in as_alice.get(form).content.decode()


def test_preview_shows_the_card_and_keeps_nothing(version, as_alice):
    form = reverse("inference:model-card", args=[version.model_id])

    shown = as_alice.post(form, {"purpose": "For **tests**", "preview": "1"}, headers={"hx-request": "true"})

    assert "<strong>tests</strong>" in shown.content.decode()
    assert "<form" not in shown.content.decode()
    version.model.refresh_from_db()
    assert version.model.card == {}
