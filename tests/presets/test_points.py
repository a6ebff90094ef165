"""When a training is scored along the way."""

from __future__ import annotations

import json

import pytest

from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import points


def test_points_along_the_way_are_spread_evenly_and_leave_the_end_to_the_end():
    scored_at, taken = 0.0, []
    for percent in range(100):
        if points.due(percent / 100, scored_at):
            scored_at = percent / 100
            taken.append(percent)

    assert taken == [20, 40, 60, 80]


def test_point_at_an_epochs_end_stands_for_the_fifth_it_lies_in():
    assert not points.due(0.35, 0.22)
    assert points.due(0.41, 0.22)
    assert not points.due(0.401, 0.399)  # scored a moment ago, at an epoch's end


def test_sample_costs_four_points_of_the_share_and_is_spread_over_all_images():
    part = points.part(0.05, whole_s=120, score_s=5)
    rows = points.sample(list(range(100, 300)), part)

    assert 4 * part * 5 == pytest.approx(0.05 * 120)
    assert len(rows) == len(set(rows)) == 60
    assert rows == sorted(rows)
    assert rows[-1] > 290


def test_all_images_are_scored_where_there_is_time_or_there_are_few():
    assert points.part(0.05, whole_s=3600, score_s=5) == 1.0
    assert points.sample(list(range(10)), 0.01) == list(range(10))


def test_more_points_come_at_epoch_ends_while_they_stay_within_their_share():
    assert points.affordable(0.05, 0.5, used_s=100, spent_s=3, cost_s=2)
    assert not points.affordable(0.05, 0.5, used_s=100, spent_s=3, cost_s=2.1)
    assert not points.affordable(0.05, 0.96, used_s=100, spent_s=0, cost_s=1)


@pytest.mark.long
@pytest.mark.proof
def test_short_training_gives_a_curve_of_five_points_and_scores_the_end_on_all_images(tmp_path):
    version = versions.squares(tmp_path / "squares", train=24, val=40)
    params = {"steps": 30, "budget_minutes": 0, "batch_size": 4, "architecture": "lite0-scratch"}
    job = Job(tmp_path / "run", version, "detect", params)

    code, log = job.run()

    history = json.loads((job.outputs / "metrics.json").read_text())["history"]
    assert code == 0, log
    assert len(history) >= 5
    assert history[-1]["step"] == 30
    assert len(job.curve("val/ap")) == len(history)
    final = [line for line in log.splitlines() if line.startswith("val/ap")][-1]
    assert final.endswith("step 30")
