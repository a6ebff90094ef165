"""`aip predict` against the real API."""

from __future__ import annotations

import json

import pytest

from inference.batch.models import PredictedData, Prediction
from tests.factories import models as factory
from tests.inference import judged, predicted

pytestmark = pytest.mark.django_db


def test_cli_predicts_shows_and_brings_the_answers(real_aip, alice, tmp_path, capfd):
    factory.model_version(alice, tmp_path)
    data = judged.dataset_version(alice, tmp_path / "data")
    rows = [data.assets.model(version=data, path=f"00{n}.png", sha256="", width=128, height=128) for n in range(1, 7)]
    data.assets.bulk_create(rows)

    assert real_aip(alice, "predict", "list") == 0
    asked = ("--split", "test", "--min-score", "0.5", "--most", "3", "--batch", "2", "--cpus", "1")
    assert real_aip(alice, "predict", "start", "cells:1", "colours_detection:1", *asked) == 0
    prediction = Prediction.objects.get()
    assert prediction.params == {"score_threshold": 0.5, "max_detections": 3, "batch": 2}
    predicted.ran(prediction)
    assert real_aip(alice, "predict", "show", prediction.pk) == 0
    for form in ("csv", "coco", "jsonl"):
        assert real_aip(alice, "predict", "download", prediction.pk, "--as", form, "--to", tmp_path / form) == 0
    assert real_aip(alice, "predict", "version", prediction.pk, "--min-score", "0.6") == 0
    listing = predicted.listing(tmp_path, ["003.png", "001.png"])
    assert real_aip(alice, "predict", "start", "cells:1", data.pk, "--list", listing, "--name", "two") == 0
    second = Prediction.objects.order_by("pk").last()
    assert (second.job.name, second.total) == ("two", 2)
    assert real_aip(alice, "predict", "stop", second.pk) == 0
    assert real_aip(alice, "predict", "list") == 0
    assert real_aip(alice, "predict", "start", "cells:1") == 2
    assert real_aip(alice, "predict", "start", "cells:1", data.pk, "--folder", "/etc/") == 2
    assert real_aip(alice, "predict", "start", "cells:1", "--folder", "/etc/") == 1
    assert real_aip(alice, "predict", "start", "cells:1", data.pk, "--list", tmp_path / "none.txt") == 5

    printed = capfd.readouterr()
    assert "No batch predictions. Start one: aip predict start" in printed.err
    assert "5 of 5" in printed.out
    assert "gets a version from the predictions" in printed.err
    assert "This folder is outside of the folders that can be registered." in printed.err
    assert len(json.loads((tmp_path / "coco").read_text())["images"]) == 5
    assert (tmp_path / "csv").read_text(encoding="utf-8-sig").startswith("path,")
    assert PredictedData.objects.get().min_score == 0.6
