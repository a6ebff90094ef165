"""What figures are called, in lists made here and in the curves, which scripts draw."""

from __future__ import annotations

import re
from pathlib import Path

import training
import workers
from training.catalog import metric_labels

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
