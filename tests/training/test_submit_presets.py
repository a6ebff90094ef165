"""Submitting trainings of presets that ask for something of their own."""

from __future__ import annotations

import pytest

from tests.factories import training as factory
from training.models import TrainingJob

pytestmark = pytest.mark.postgres

API = "/api/v1/training/jobs/"


def test_training_submit_of_a_preset_for_processors_alone_needs_no_word_of_it(api, machine, alice):
    digits = factory.version(alice, "digits", task="classification")
    sent = {"version": digits.pk, "preset": "hog_svm", "gpus_per_node": 0}

    plain, on_cards = (api.post(API, sent | more, format="json") for more in ({}, {"gpus_per_node": 1}))

    assert plain.status_code == 201
    assert "learns on processors alone. Ask for no cards." in str(on_cards.json())


def test_training_submit_takes_a_class_that_is_called_by_a_number(api, machine, alice):
    parts = factory.version(alice, "parts", task="classification")

    sent = {"version": parts.pk, "preset": "anomaly", "gpus_per_node": 0, "params": {"good_class": 1}}

    answer = api.post(API, sent, format="json")

    assert TrainingJob.objects.get(pk=answer.json()["id"]).params["good_class"] == "1"
