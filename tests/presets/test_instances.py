"""The instance segmenter's parts in this process, and the preset as a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import instances, instances_card, masks, yolact
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run

ALONE = Ranks(0, 1, torch.device("cpu"))
SMALL = {
    **{"budget_minutes": 0, "show_steps": True, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 4},
    **{"architecture": "lite0-scratch", "head_width": 16, "prototypes": 8},
}


@pytest.fixture(scope="module")
def outlines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.outlines(tmp_path_factory.mktemp("versions") / "outlines", train=8, val=4, size=(96, 64))


def task(version: Path, cache: Path, **params: Any) -> instances.Instances:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return instances.Instances(run, instances_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE)


def rectangle(x: float, y: float, w: float, h: float, **more: Any) -> dict[str, Any]:
    ring = [x, y, x + w, y, x + w, y + h, x, y + h]
    return {"category_id": 1, "bbox": [x, y, w, h], "area": w * h, "segmentation": [ring], **more}


# ---- masks -----------------------------------------------------------------------------------------------------


def test_masks_number_objects_as_they_are_drawn_and_crowds_not_at_all():
    shapes = [rectangle(0, 0, 6, 6, iscrowd=1), rectangle(4, 4, 16, 16), rectangle(8, 8, 4, 4)]

    drawn = masks.draw_objects(shapes, (20, 20), (20, 20), boxes="whole")

    assert (drawn[1, 1], drawn[5, 5], drawn[9, 9], drawn[1, 15]) == (masks.IGNORED, 1, 2, masks.GROUND)


def test_masks_leave_out_objects_beyond_those_a_pixel_can_number():
    shapes = [rectangle(4 * (place % 20), 4 * (place // 20), 4, 4) for place in range(300)]

    drawn = masks.draw_objects(shapes, (80, 60), (80, 60), boxes="whole")

    assert drawn[0, 0] == 1
    assert sorted(np.unique(drawn)) == [*range(1, masks.MAX_OBJECTS + 1), masks.IGNORED]


# ---- loss ------------------------------------------------------------------------------------------------------


def test_mask_loss_counts_only_pixels_in_the_box_that_are_not_ignored():
    shown = torch.zeros(8, 8, dtype=torch.int64)
    shown[2:6, 2:6] = 1
    shown[2, 2] = masks.IGNORED
    right = torch.where(shown == 1, 20.0, -20.0)
    right[2, 2] = -20.0
    elsewhere = right.clone()
    elsewhere[:, 7] = 20.0  # outside the box
    prototypes = torch.stack([right, elsewhere, -right])
    numbers, boxes = torch.ones(1, dtype=torch.int64), torch.tensor([[1.0, 1, 7, 7]])

    losses = [float(yolact.mask_loss(prototypes, share[None], shown, numbers, boxes)) for share in torch.eye(3)]

    assert losses == pytest.approx([0, 0, 20], abs=1e-3)


def test_mask_loss_of_no_object_is_nothing():
    nothing = yolact.mask_loss(
        torch.rand(3, 4, 4), torch.zeros(0, 3), torch.zeros(4, 4), torch.zeros(0), torch.zeros(0, 4)
    )

    assert float(nothing) == 0


# ---- the preset ------------------------------------------------------------------------------------------------


def test_instances_preset_refuses_a_version_without_outlines(tmp_path):
    bare = versions.squares(tmp_path / "bare", train=2, val=1, boxes=False)
    boxed = versions.squares(tmp_path / "boxed", train=2, val=1)

    with pytest.raises(Refused, match=r"bare has no outlines yet\. Annotate some images, then train"):
        task(bare, tmp_path / "cache")
    with pytest.raises(Refused, match=r"boxed has only boxes.*Choose ellipse or whole"):
        task(boxed, tmp_path / "cache", boxes="ignore")


def test_instances_preset_loss_is_a_mean_over_the_batch(outlines, tmp_path):
    one = task(outlines, tmp_path / "cache")
    batch, draws = one.load([0, 1, 0, 1]), one.draw(torch.Generator().manual_seed(0), 2)
    draws = {name: torch.cat([drawn, drawn]) for name, drawn in draws.items()}

    with torch.no_grad():
        whole = one.loss(one.model, batch, draws, ALONE)
        half = one.loss(one.model, tuple(p[:2] for p in batch), {n: d[:2] for n, d in draws.items()}, ALONE)

    for name, value in whole.items():
        assert half[name].item() == pytest.approx(value.item(), rel=1e-4)


def test_instances_preset_scores_what_is_really_there_as_right(outlines, tmp_path):
    """Boxes and masks made of the truth itself, through the prototypes' coarse grid."""
    one = task(outlines, tmp_path / "cache")
    found = []
    for row in one.score:
        drawn = one.masks.rows([row])[0, ..., 0]
        for place, (box, kind) in enumerate(zip(one.fitted[row], one.truth[row][1], strict=True)):
            shown = torch.from_numpy((drawn == place + 1).astype(np.float32))[None, None]
            coarse = torch.nn.functional.avg_pool2d(shown, 4)[0] - 0.5
            scores = np.zeros((1, 4), np.float32)
            scores[0, kind] = 0.9
            found += one.detections(row, [box[None], scores, np.ones((1, 1), np.float32), coarse.numpy()])

    figures = one.figures(found, one.score)

    assert figures["val/ap50"] == pytest.approx(1)
    assert figures["val/mask_ap50"] > 0.7  # small shapes lose their corners on a grid of four pixels, hidden parts all
    assert one.figures([], one.score)["val/mask_ap50"] == 0


@pytest.mark.long
@pytest.mark.proof
def test_instances_preset_goes_on_after_a_suspend_and_its_model_is_evaluated_alike(tmp_path, outlines):
    params = {**SMALL, "steps": 30, "lr": 0.01, "ema": 0.5}
    straight = Job(tmp_path / "straight", outlines, "instances", params)
    assert straight.run()[0] == 0

    cut = Job(tmp_path / "cut", outlines, "instances", params)
    with cut.start() as process:
        for line in process.stdout:
            if "step 4 " in line:
                cut.request("suspend")
    assert process.returncode == 75
    cut.request("")
    code, log = cut.run()

    assert code == 0, log
    figures = [json.loads((job.outputs / "metrics.json").read_text()) for job in (straight, cut)]
    assert figures[0]["val/mask_ap50"] == figures[1]["val/mask_ap50"]
    about = json.loads((cut.outputs / "model" / "model.json").read_text())
    assert (about["task"], list(about["output"])) == ("instances", list(instances.Instances.outputs))
    assert about["verify"]["max_abs_diff"] < 1e-2
    losses = straight.curve("train/loss")
    assert losses[-1] < 0.7 * losses[0]
    judged = evaluate(a_run(tmp_path / "judged", cut.outputs / "model", outlines, split="val"))
    assert judged["summary"]["ap50"] == pytest.approx(figures[1]["val/mask_ap50"], abs=0.05)
    assert judged["summary"]["box_ap50"] == pytest.approx(figures[1]["val/ap50"], abs=0.05)


# ---- for people to see -----------------------------------------------------------------------------------------


def test_people_see_the_class_of_every_pixel_they_train_on_and_of_every_answer(outlines, tmp_path):
    one = task(outlines, tmp_path)
    rows = one.score[:2]
    draws = one.draw(torch.Generator().manual_seed(0), 4)

    truths, targets = one.truths(rows), one.targets(one.load([0, 1, 2, 3]), draws)

    for row, marks in zip(rows, truths, strict=True):
        assert marks.mask is not None
        drawn = set(np.unique(marks.mask)) - {masks.GROUND, masks.IGNORED}
        assert drawn <= {int(kind) + 1 for kind in one.truth[row][1]}
        x0, y0, x1, y1 = (round(float(side)) for side in one.fitted[row][-1])  # what lies on top
        assert (marks.mask[y0:y1, x0:x1] == one.truth[row][1][-1] + 1).mean() > 0.3
    assert [marks.mask.shape for marks in targets] == [(64, 96)] * 4


def test_mask_of_an_answer_stays_inside_its_box_and_the_surer_one_lies_on_top(outlines, tmp_path):
    one = task(outlines, tmp_path)
    places = np.array([[8, 8, 40, 40], [24, 8, 60, 40]], np.float32)
    scores = np.array([[0.9, 0, 0, 0], [0, 0.6, 0, 0]], np.float32)
    everywhere = np.ones((8, 16, 24), np.float32)

    marks = one._marked((96, 64), places, scores, np.ones((2, 8), np.float32), everywhere)

    assert sorted(marks.labels) == ["disc 0.90", "square 0.60"]
    assert (marks.mask[20, 10], marks.mask[20, 30], marks.mask[20, 50], marks.mask[50, 30]) == (1, 1, 2, 0)
