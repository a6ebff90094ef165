"""`aip evaluate mistakes|annotate|calibration|threshold|slices|report` against the real API."""

from __future__ import annotations

import json

import pytest

from datasets.models import Asset, Dataset
from inference.evaluation import error_datasets, results
from tests.inference import judged

pytestmark = pytest.mark.django_db


def test_verbs_show_mend_choose_and_save(real_aip, alice, tmp_path, capfd):
    made = judged.evaluation(alice, tmp_path, params={"altered_images": 1})
    lines = (made.version.path / "manifest.jsonl").read_text().splitlines()
    Asset.objects.bulk_create(Asset(version=made.version, **json.loads(line)) for line in lines)
    file = tmp_path / "report.html"
    kind = next(one.name for one in error_datasets.read_mistakes(results.load(made)).kinds if one.images)

    codes = [
        real_aip(alice, "evaluate", "mistakes", made.pk),
        real_aip(alice, "evaluate", "annotate", made.pk, "--mistake", kind, "--name", "mend"),
        real_aip(alice, "evaluate", "calibration", made.pk, "--missed", "5"),
        real_aip(alice, "evaluate", "threshold", made.pk, "0.25"),
        real_aip(alice, "evaluate", "slices", made.pk),
        real_aip(alice, "evaluate", "report", made.pk, file),
    ]
    printed = capfd.readouterr()

    made.refresh_from_db()
    assert codes == [0] * 6, printed.err
    assert (Dataset.objects.filter(name="mend").exists(), made.chosen_threshold) == (True, 0.25)
    assert "Expected calibration error" in printed.err + printed.out
    assert "duplicate" in printed.out
    assert "small" in printed.out
    assert 'id="report-robustness"' in file.read_text()
