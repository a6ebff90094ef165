"""Colors that a dataset version stores: changed by page and API, shown wherever its classes are drawn."""

import json

import numpy as np
import pytest

from aiplatform.lib.class_colors import PALETTE
from annotation.services import sets
from datasets.models import DatasetVersion
from inference.registry import class_colors, prediction_cards
from inference.video.watcher import draw
from tests.factories import models as factory
from tests.factories.annotation import converted
from tests.inference.seeing import annotated

pytestmark = pytest.mark.django_db


@pytest.fixture
def version(alice):
    return annotated(alice)


def first(version):
    return version.classes[0]["id"], version.classes[0]["name"]


def test_color_changed_on_the_page_is_drawn_in_the_gallery(as_alice, as_bob, version):
    number, _name = first(version)
    page = f"/datasets/{version.dataset_id}/v{version.number}/"

    before = as_alice.get(page).content.decode()
    changed = as_alice.post(f"{page}colors/", {f"color-{number}": "#112233"})
    stranger = as_bob.post(f"{page}colors/", {f"color-{number}": "#445566"})
    after = as_alice.get(page).content.decode()

    assert f'color="{PALETTE[0]}"' in before
    assert changed.url == page
    assert stranger.status_code == 404
    assert 'color="#112233"' in after
    assert 'fill="#112233"' in after


def test_api_shows_and_changes_colors_and_refuses_wrong_ones(api, version):
    number, _name = first(version)
    route = f"/api/v1/versions/{version.pk}/"

    shown = api.get(route).json()["classes"][0]
    changed = api.patch(route, {"colors": {str(number): "#ABCDEF"}}, format="json").json()
    wrong = [
        api.patch(route, {"colors": colors}, format="json").status_code
        for colors in ({str(number): "red"}, {"999": "#000000"}, {"x": "#000000"})
    ]

    assert (shown["id"], shown["color"]) == (number, PALETTE[0])
    assert changed["classes"][0]["color"] == "#abcdef"
    assert wrong == [400, 400, 400]
    assert DatasetVersion.objects.get(pk=version.pk).class_colors[number] == "#abcdef"


def test_annotation_takes_the_colors_and_a_frozen_version_keeps_those_of_the_project(alice, version):
    number, name = first(version)
    version.colors = {str(number): "#112233"}
    version.save()
    made = sets.create_with_project(owner=alice, source=version, name="again")
    label = made.labels.get(name=name)
    assert label.colour == "#112233"

    sets.edit_label(label, name="renamed", supercategory="", shape=label.shape, colour="#445566")
    added = sets.add_label(made, name="new")
    assert added.colour not in {row.colour for row in made.labels.exclude(pk=added.pk)}
    frozen = converted(made, by=alice).version

    assert frozen.class_names[number] == "renamed"
    assert frozen.class_colors[number] == "#445566"
    assert frozen.class_colors[added.coco_id] == added.colour


def test_model_draws_with_the_colors_of_its_training_data_by_name(alice, api, version, tmp_path):
    number, name = first(version)
    version.colors = {str(number): "#112233"}
    version.save()
    model = factory.model_version(alice, tmp_path)
    model.classes = [{"id": 0, "name": "other"}, {"id": 1, "name": name}]
    model.dataset_version = version
    model.save()

    assert class_colors.for_model(model) == {0: PALETTE[0], 1: "#112233"}
    shown = api.get(f"/api/v1/model-versions/{model.pk}/").json()["classes"]
    assert [item["color"] for item in shown] == [PALETTE[0], "#112233"]
    assert json.loads(json.dumps(shown))


def test_predictions_and_films_are_drawn_in_the_colors_of_classes():
    line = {
        "n": 0, "path": "a.png", "width": 20, "height": 20,
        "predictions": [{"class_id": 4, "name": "cell", "score": 0.9, "box": [1, 1, 9, 9]}],
    }  # fmt: skip
    shown = np.zeros((40, 40, 3), np.uint8)

    drawn = prediction_cards.card(line, {4: "#112233"}, placed=True)["boxes"]
    unknown = prediction_cards.card(line, {}, placed=True)["boxes"]
    draw.draw(
        shown, (40, 40), np.array([[5.0, 20.0, 30.0, 38.0]]), np.array([4]), np.array([1]), {4: "cell"},
        {4: (17, 34, 51)}, (), (),
    )  # fmt: skip

    assert [box["color"] for box in drawn] == ["#112233"]
    assert [box["color"] for box in unknown] == [PALETTE[4]]
    assert tuple(shown[30, 5]) == (17, 34, 51)
