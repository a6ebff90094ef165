"""One evaluation states the same values, split and threshold in pages, API, report and CLI."""

import pytest

from tests.inference import judged

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("task", "rule"), [("classification", "most probable class"), ("detection", "confidence threshold")]
)
def test_page_api_report_and_cli_state_one_precision_with_its_split_and_threshold(
    alice, as_alice, tmp_path, real_aip, capfd, task, rule
):
    evaluation = judged.evaluation(alice, tmp_path, task=task)

    row = as_alice.get(f"/api/v1/evaluations/{evaluation.pk}/").json()
    page = as_alice.get(f"/evaluations/{evaluation.pk}/")
    report = as_alice.get(f"/evaluations/{evaluation.pk}/report/").content.decode()
    real_aip(alice, "evaluations", "show", evaluation.pk)
    shown = capfd.readouterr().out

    data = page.context["shown"]
    opened = data["thresholds"].index(round(row["metrics"]["threshold"], 4))  # where evaluation.js opens the page
    for name in ("precision", "recall", "f1"):
        assert data["means"][opened][name] == row["metrics"][name]
    assert row["conditions"].startswith("Split: ")
    assert rule in row["conditions"]
    for text in (page.content.decode(), report, " ".join(shown.split())):
        assert row["conditions"] in text
