"""Windows of a pyramid of histograms, the machines on them, and the preset as a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import export, hog_detect, hog_detect_card, pyramid, svm
from training.presets.run import Refused, Run

SQUARES = {"layers": 3, "window": 4, "cell": 4, "rounds": 1, "iterations": 40}


@pytest.fixture(scope="module")
def squares(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.squares(tmp_path_factory.mktemp("versions") / "squares")


def training(version: Path, root: Path, **params: Any) -> hog_detect.Training:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(root)})
    return hog_detect.Training(run, hog_detect_card.CARD.read({**SQUARES, **params}))


def small_pyramid(*scales: float, width: int = 80, height: int = 60) -> pyramid.Pyramid:
    return pyramid.Pyramid(pyramid.Window(4, 5, 4), list(scales), bins=9, width=width, height=height).eval()


# ---- windows ---------------------------------------------------------------------------------------------------


def test_pyramid_windows_lie_where_their_boxes_say():
    made = small_pyramid(2.0, 1.0)
    image = torch.full((1, 1, 60, 80), 0.3)
    image[:, :, 24:40, 32:52] = 0.9  # 16 pixels high and 20 wide: one window of the smaller level, to the pixel

    windows = made.windows(made(image), torch.arange(len(made.boxes)))

    place = int((made.boxes - torch.tensor([32.0, 24.0, 52.0, 40.0])).abs().sum(1).argmin())
    assert made.boxes[place].tolist() == [32, 24, 52, 40]
    one = small_pyramid(1.0, width=28, height=24)  # the object alone, with the cell around it
    alone = one.windows(one(image[:, :, 20:44, 28:56]), torch.arange(len(one.boxes)))
    middle = int((one.boxes - torch.tensor([4.0, 4.0, 24.0, 20.0])).abs().sum(1).argmin())
    assert windows[place] == pytest.approx(alone[middle], abs=1e-5)
    assert made.boxes.min() >= 0
    assert (made.boxes.amax(0) <= torch.tensor([80, 60, 80, 60])).all()


def test_pyramid_leaves_out_levels_that_hold_no_window():
    assert small_pyramid(1.0, 0.2).sizes == [(60, 80)]


def test_hog_detector_margins_are_those_of_its_windows():
    made = small_pyramid(1.5, 1.0, 0.7)
    draw = torch.Generator().manual_seed(0)
    image = torch.rand(1, 3, 60, 80, generator=draw)
    weights, bias = torch.randn(2, made.dims, generator=draw), torch.tensor([0.5, -1.0])

    boxes, margins = pyramid.HogDetector(made, weights, bias)(image)

    windows = made.windows(made(image), torch.arange(len(made.boxes)))
    assert margins[0] == pytest.approx(windows @ weights.T + bias, abs=1e-4)
    assert torch.equal(boxes[0], made.boxes)


def test_scales_fit_small_and_large_objects_in_even_steps():
    sides = np.geomspace(20, 80, 50)
    boxes = np.stack([sides * 0, sides * 0, sides, sides], 1)
    window = pyramid.window_of(boxes, cells=6, cell=5)

    scales = pyramid.scales_of(boxes, window, layers=3, largest=2.0)

    assert (window.wide, window.high) == (6, 6)
    assert scales[0] / scales[1] == pytest.approx(scales[1] / scales[2])
    assert 30 / 80 < scales[2] < scales[0] < 30 / 20


def test_window_has_the_shape_of_most_objects():
    boxes = np.array([[0, 0, 10, 30]] * 3 + [[0, 0, 10, 10]], np.float32)

    window = pyramid.window_of(boxes, cells=6, cell=4)

    assert (window.wide, window.high) == (2, 6)


def test_export_answers_as_the_hog_detector_does(tmp_path):
    made = small_pyramid(1.5, 0.8)
    draw = torch.Generator().manual_seed(0)
    model = pyramid.HogDetector(made, torch.randn(3, made.dims, generator=draw), torch.zeros(3))
    samples = torch.rand(3, 1, 60, 80, generator=draw)

    scaled = model.scaled(torch.tensor([0.5, 0.1, 1.0]), torch.zeros(3))
    export.write(scaled, tmp_path, outputs=("boxes", "scores"), samples=samples, metadata={})  # compares both

    assert json.loads((tmp_path / "model.json").read_text())["verify"]["max_abs_diff"] < 1e-3


# ---- machines --------------------------------------------------------------------------------------------------


def test_squared_hinge_leaves_out_what_a_machine_does_not_learn_from():
    margins, signs = torch.tensor([[0.5, -3.0, 9.0]]), torch.tensor([[1.0, -1.0, 0.0]])

    assert svm.squared_hinge(margins, signs).item() == pytest.approx(0.25)


def test_sigmoid_of_margins_says_how_often_they_are_right():
    draw = np.random.default_rng(0)
    margins = draw.normal(size=4000)
    right = draw.random(4000) < 1 / (1 + np.exp(-(2 * margins - 1)))

    slope, shift = svm.sigmoid_of(torch.tensor(margins).float(), torch.tensor(right))

    theirs = LogisticRegression(C=1e6).fit(margins[:, None], right)
    assert (slope, shift) == pytest.approx((theirs.coef_[0, 0], theirs.intercept_[0]), rel=0.02)


def test_hog_detect_preset_signs_tell_objects_ground_and_what_lies_between(squares, tmp_path):
    one = training(squares, tmp_path)
    row = one.learn[0]

    signs = one._signs(row)

    overlap = torch.from_numpy(hog_detect.overlaps(one.pyramid.boxes.numpy(), one.fitted[row]))
    for own, kind in zip(overlap.T, one.truth[row][1], strict=True):
        assert (own[signs[:, kind] == 1] >= hog_detect.ENOUGH).all()
        assert (own[signs[:, kind] == -1] < hog_detect.NEAR).all()
        assert 1 <= (signs[:, kind] == 1).sum() <= hog_detect.BEST
    assert (signs[:, 0] == -1).sum() > 0.5 * len(signs)


def test_hog_detect_preset_refuses_images_smaller_than_a_window(squares, tmp_path):
    with pytest.raises(Refused, match="smaller than a window of 4×4 cells of 30: choose a larger"):
        training(squares, tmp_path, cell=30, width=96)


def test_hog_detect_preset_refuses_a_version_without_boxes(tmp_path):
    bare = versions.squares(tmp_path / "bare", boxes=False)

    with pytest.raises(Refused):
        training(bare, tmp_path)


# ---- the preset ------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.proof
def test_hog_detect_preset_is_paused_learns_and_its_model_is_judged_as_it_says(tmp_path, squares):
    job = Job(tmp_path / "job", squares, "hog_detect", SQUARES)
    job.request("pause")

    log = []
    with job.start() as process:
        for line in process.stdout:
            log.append(line)
            if "paused at step" in line:
                job.request("")

    assert process.returncode == 0, "".join(log)
    figures = json.loads((job.outputs / "metrics.json").read_text())
    assert figures["val/ap50"] > 0.5
    assert job.curve("phase")[-1] == "exporting"
    assert max(job.curve("progress")) < 1
    judged = evaluate(a_run(tmp_path / "judged", job.outputs / "model", squares, split="val"))
    assert judged["summary"]["ap50"] == pytest.approx(figures["val/ap50"], abs=0.05)
