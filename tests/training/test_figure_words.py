"""What figures are called, in lists made here and in the curves, which scripts draw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import training
import workers
from training.catalog import key_metrics, metric_labels

CURVES = Path(workers.__file__).parent / "static" / "workers" / "figures.js"
PRESETS = Path(training.__file__).parent / "presets"
KEY = re.compile(r'"((?:train|val|test)/[a-z0-9_]+)[/"]')


def _curves() -> set[str]:
    return set(KEY.findall(CURVES.read_text()))


def test_curves_have_words_for_every_figure_that_lists_have_words_for():
    drawn = {key for key in metric_labels.LABELS if "/" in key}  # the others are said once, at the end

    assert drawn - _curves() == set()


def test_curves_have_words_for_every_figure_that_a_preset_writes():
    written = {key for file in PRESETS.glob("*.py") for key in KEY.findall(file.read_text())}
    learned = {part for file in PRESETS.glob("*.py") for part in re.findall(r'"([a-z]+_loss)":', file.read_text())}

    assert len(written) > 20
    assert written | {f"train/{part}" for part in learned} <= _curves()


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ({"val/ap50": 0.5, "test/ap50": 0.7}, "AP50 · val 0.500"),
        ({"test/ap50": 0.7}, "AP50 · test 0.700"),
        ({"ap50": 12345.678}, "AP50 12345.7"),
        ({"ap50": True, "map": 0.25}, "mAP 0.250"),
        ({"ap50": float("nan")}, "None"),
    ],
)
def test_key_metric_names_its_split(metrics, text):
    assert str(key_metrics.find(metrics, [("ap50", "AP50"), ("map", "mAP")])) == text


def test_best_value_of_a_run_is_kept_only_where_it_is_higher():
    metric = key_metrics.KeyMetric("AP50", 0.5004, "val")

    assert [metric.with_best(best).best_text for best in (0.6, 0.5, 0.5001, None)] == ["0.600", "", "", ""]
