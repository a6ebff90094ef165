"""Mistakes that lead into annotation, reliability of scores, and thresholds by cost."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from django.urls import reverse

from aiplatform.lib.errors import DomainError, NotFound
from datasets.models import Asset, Dataset, Import
from datasets.services import imports
from inference.evaluation import calibration, error_datasets, results, thresholds
from tests.inference import judged

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(alice, tmp_path):
    evaluation = judged.evaluation(alice, tmp_path)
    lines = (evaluation.version.path / "manifest.jsonl").read_text().splitlines()
    Asset.objects.bulk_create(Asset(version=evaluation.version, **json.loads(line)) for line in lines)
    return evaluation


def test_images_of_a_mistake_become_a_dataset_with_their_annotation(api, client, alice, made):
    report = error_datasets.read_mistakes(results.load(made))
    kind = next(item for item in report.kinds if item.count)
    api.force_authenticate(alice)
    client.force_login(alice)

    shown = api.get(f"/api/v1/evaluations/{made.pk}/images/", {"mistake": kind.name}).json()["results"]
    page = client.get(reverse("inference:evaluation-images", args=[made.pk]), {"mistake": kind.name})
    answer = api.post(f"/api/v1/evaluations/{made.pk}/annotate/", {"name": "mend", "mistake": kind.name}, format="json")
    imports.run(Import.objects.get(dataset=answer.json()["dataset"]).pk)

    dataset = Dataset.objects.get(name="mend")
    version = dataset.versions.get()
    before = {item.path: item.object_count for item in made.version.assets.all()}
    truths = {row["path"]: len(row["truth"]) for row in shown}
    assert answer.status_code == 201
    assert b"box-mistake" in page.content
    assert len(shown) == kind.images == version.image_count
    assert {item.path: item.object_count for item in version.assets.all()} == truths
    assert before.keys() > truths.keys()


def test_annotating_refuses_what_cannot_be_at_once(alice, bob, made):
    with pytest.raises(DomainError) as refused:
        error_datasets.annotate(made, by=alice, name="", mistake="laziness")
    with pytest.raises(NotFound):
        error_datasets.annotate(made, by=bob, name="mend", mistake="missed")
    with pytest.raises(error_datasets.NothingToMend):
        error_datasets.annotate(made, by=alice, name="mend", cell="2,7")

    assert {error.blamed for error in refused.value.every} == {"mistake", "name"}


def test_reliability_of_scores_that_are_too_sure():
    scores, right = np.array([0.9] * 100 + [0.1] * 100), np.array([True] * 70 + [False] * 30 + [False] * 100)

    reliability = calibration.reliability(scores, right)

    assert reliability.ece == pytest.approx((0.2 + 0.1) / 2)
    assert [(row.count, row.right) for row in reliability.bins if row.count] == [(100, 0.0), (100, pytest.approx(0.7))]
    assert calibration.reliability(np.array([]), np.array([], bool)) is None


def test_costs_choose_a_low_threshold_where_missing_is_dear():
    content = {"thresholds": [0.0, 0.5, 1.0], "classes": [{"tp": [10, 8, 0], "fp": [6, 1, 0], "truths": 10}]}

    cheap, dear = (calibration.costs(content, wrong=1, missed=missed) for missed in (1, 10))

    assert (cheap.threshold, cheap.costs) == (0.5, [6, 3, 10])
    assert (dear.threshold, dear.costs) == (0.0, [6, 21, 100])
    assert calibration.costs({"thresholds": [1], "classes": "none"}, wrong=1, missed=1) is None


def test_threshold_that_somebody_chose_is_the_best_score(api, client, alice, made):
    api.force_authenticate(alice)
    client.force_login(alice)
    route = f"/api/v1/evaluations/{made.pk}/"

    content = api.get(f"{route}calibration/", {"missed": 20}).json()
    chosen = api.post(f"{route}threshold/", {"threshold": 0.17}, format="json")
    score = thresholds.for_version(made.model_version, by=alice).score
    refused = api.post(f"{route}threshold/", {"threshold": 1.5}, format="json")
    page = client.get(reverse("inference:evaluation-calibration", args=[made.pk]), {"missed": "20"})
    wrong = client.get(reverse("inference:evaluation-calibration", args=[made.pk]), {"missed": "-1"})
    client.post(reverse("inference:evaluation-threshold", args=[made.pk]), {"threshold": ""})

    assert content["reliability"]["answers"] == sum(row["count"] for row in content["reliability"]["bins"])
    assert content["costs"]["cost"] == min(content["costs"]["costs"])
    assert (chosen.status_code, score, refused.status_code) == (200, 0.17, 400)
    assert (page.status_code, wrong.status_code) == (200, 400)
    assert page.context["at_best"]["threshold"] == f"{content['costs']['threshold']:.2f}"
    assert thresholds.for_version(made.model_version, by=alice).score == made.metrics["threshold"]
    detail = client.get(reverse("inference:evaluation-detail", args=[made.pk])).content
    assert b"mistake-table" in detail


def test_report_is_one_file_that_needs_nothing_else(api, client, alice, bob, made):
    client.force_login(alice)
    api.force_authenticate(alice)

    page = client.get(reverse("inference:evaluation-report", args=[made.pk]))
    sent = api.get(f"/api/v1/evaluations/{made.pk}/report/")
    api.force_authenticate(bob)

    text = page.content.decode()
    assert page["Content-Disposition"].startswith("attachment")
    named = ("classes", "confusion", "mistakes", "objects", "measured")
    assert all(f'id="report-{part}"' in text for part in named)
    assert text.count("data:image/webp;base64,") == 5
    assert not re.findall(r"(?:src|href)=\"(?!data:)[^\"#]", text)
    assert "@media print" in text
    scores = [float(score) for score in re.findall(r'data-score="([\d.]+)"', text)]
    assert scores
    assert min(scores) >= made.metrics["threshold"] - 5e-4  # as the page draws them
    assert "<script" not in text
    assert sent.content.decode().count("chart-line") == text.count("chart-line")
    assert api.get(f"/api/v1/evaluations/{made.pk}/report/").status_code == 404


def test_figures_have_the_names_of_the_manual_too(api, alice, made):
    api.force_authenticate(alice)

    row = api.get(f"/api/v1/evaluations/{made.pk}/").json()

    assert row["figures"] == {"mAP": row["metrics"]["map"]}
    assert results.manual_names("classification", {"accuracy": 0.5, "recall_5": 1, "f1": 1}) == {
        "Accuracy": 0.5, "Recall_5": 1.0,
    }  # fmt: skip


def test_parts_of_the_page_are_tabs_in_the_order_of_the_questions(alice, as_alice, tmp_path):
    made = judged.evaluation(alice, tmp_path)

    html = as_alice.get(f"/evaluations/{made.pk}/").content.decode()

    names = ["overview", "classes", "errors", "images", "slices", "calibration"]
    assert [html.index(f'href="#{name}"') for name in names] == sorted(html.index(f'href="#{name}"') for name in names)
    assert [html.count(f'id="part-{name}"') for name in names] == [1] * len(names)
    assert html.index('id="threshold"') < html.index('href="#overview"')
    assert 'href="#robustness"' not in html
