"""Which presets the form offers for a dataset version: the rule that the API enforces."""

from __future__ import annotations

import pytest

from datasets.models import Asset
from tests.factories import training as factory
from training.catalog.preset_fit import can_learn, offer_for
from training.presets.catalog import PRESETS

PAGE = "/training/new/"
API = "/api/v1/training/jobs/"
HTMX = {"HTTP_HX_REQUEST": "true"}


@pytest.fixture
def digits(alice):
    return factory.version(alice, "digits", task="classification")


def names(fits) -> list[str]:
    return [fit.preset.name for fit in fits]


def cards(client, version, **more) -> dict[str, list[str] | str]:
    """The presets that a page offers, folds away, and checks."""
    context = client.get(PAGE, {"version": version.pk if version else ""} | more, **HTMX).context
    offered = [card.fit.preset.name for card in context["cards"]]
    return {
        "offered": offered,
        "others": [card.fit.preset.name for card in context["others"]],
        "chosen": context["chosen"],
    }


def test_boxes_offer_detection_first_and_outlines_with_a_note(cells):
    offer = offer_for(cells)
    notes = {fit.preset.name: fit.note for fit in offer.fitting}

    assert names(offer.fitting) == ["detect", "tag", "hog_detect", "segment", "instances"]
    assert [name for name, note in notes.items() if note] == ["segment", "instances"]
    assert notes["segment"] == "Boxes are used as ellipses."


def test_every_other_preset_says_what_it_needs_and_what_the_version_has(cells, digits, alice):
    raw = factory.version(alice, "raw", task="none")
    reasons = {fit.preset.name: fit.reason for fit in offer_for(cells).others}

    assert reasons["keypoints"] == "Needs keypoints; this version has boxes only."
    assert reasons["classify"] == "Needs one class per image; this version has boxes only."
    assert names(offer_for(digits).fitting) == ["classify", "embed", "hog_svm", "anomaly"]
    assert names(offer_for(raw).fitting) == []
    assert offer_for(raw).others[0].reason == "Needs boxes, polygons or masks; this version has no annotations."


def test_outlines_are_named_and_need_no_note(cells):
    Asset.objects.filter(version=cells).update(shapes=[[1, "polygon", [1, 1, 9, 1, 9, 9]]])
    offer = offer_for(cells)

    assert not any(fit.note for fit in offer.fitting)
    assert {fit.reason for fit in offer.others if fit.preset.name == "keypoints"} == {
        "Needs keypoints; this version has outlines."
    }


def test_api_accepts_exactly_the_presets_that_fit(api, machine, cells, digits):
    for version in (cells, digits):
        fitting = names(offer_for(version).fitting)
        for name, preset in PRESETS.items():
            sent = {"version": version.pk, "preset": name, "gpus_per_node": 0}
            answer = api.post(API, sent, format="json")

            assert can_learn(preset, version) == (name in fitting)
            assert answer.status_code == (201 if name in fitting else 409), (name, answer.json())


def test_page_offers_the_presets_of_the_chosen_version(as_alice, machine, cells, digits):
    whole = as_alice.get(f"{PAGE}?version={digits.pk}")

    assert [card.fit.preset.name for card in whole.context["cards"]] == ["classify", "embed", "hog_svm", "anomaly"]
    assert whole.context["chosen"] == "classify"
    assert 'value="detect" disabled' in whole.content.decode()
    assert cards(as_alice, cells)["chosen"] == "detect"
    assert cards(as_alice, None) == {"offered": list(PRESETS), "others": [], "chosen": "detect"}


def test_choice_of_a_user_stays_where_it_fits(as_alice, machine, cells, digits, alice):
    raw = factory.version(alice, "raw", task="none")

    assert cards(as_alice, digits, preset="hog_svm")["chosen"] == "hog_svm"
    assert cards(as_alice, cells, preset="hog_svm")["chosen"] == "detect"
    assert cards(as_alice, cells, preset="own")["chosen"] == "own"
    assert cards(as_alice, raw, preset="detect")["chosen"] == "own"


def test_preset_that_the_form_started_from_stays_with_its_reason(as_alice, machine, digits):
    page = cards(as_alice, digits, preset="detect", pinned="1")
    text = as_alice.get(PAGE, {"version": digits.pk, "preset": "detect", "pinned": "1"}, **HTMX).content.decode()

    assert (page["chosen"], page["offered"][-1], "detect" in page["others"]) == ("detect", "detect", False)
    assert "Needs boxes, polygons or masks; this version has one class per image." in text
    assert 'value="detect" checked' in text


def test_refused_form_keeps_the_version_and_the_preset(as_alice, machine, digits):
    page = as_alice.post(
        PAGE, {"version": digits.pk, "preset": "hog_svm", "name": "a/b", "gpus_per_node": 0, "cpus": 1}
    )

    assert page.status_code == 422
    assert page.context["chosen"] == "hog_svm"
    assert page.context["form"]["version"].value() == str(digits.pk)


def test_cards_show_what_a_preset_reached_on_the_dataset(as_alice, as_bob, alice, bob, machine, cells):
    for value in (0.71, 0.934):
        training = factory.training(alice, data=cells, state="succeeded")
        training.metrics = {"val/ap50": value}
        training.save()

    mine = as_alice.get(PAGE, {"version": cells.pk}, **HTMX).content.decode()
    fresh = as_alice.get(PAGE, {"version": factory.version(alice, "fresh").pk}, **HTMX).content.decode()
    theirs = as_bob.get(PAGE, {"version": cells.pk}, **HTMX)

    assert "Best here: AP50 on validation 0.934 (cells v1)" in mine
    assert "Best here" not in fresh
    assert "Best here" not in theirs.content.decode()
    assert [card.fit.preset.name for card in theirs.context["cards"]] == list(PRESETS)  # as without a version


def test_cards_show_measured_results_alone(as_alice, machine, cells):
    text = as_alice.get(PAGE, **HTMX).content.decode()

    assert "AP50 0.905 on BCCD" in text
    assert "0.9 M parameters" in text
    for preset in PRESETS.values():
        assert (preset.headline is None) == (not preset.expected)
        assert preset.headline in (None, *preset.expected)


def test_choice_of_presets_takes_few_queries(as_alice, machine, cells, django_assert_max_num_queries):
    with django_assert_max_num_queries(14):
        as_alice.get(PAGE, {"version": cells.pk}, **HTMX)
