"""The segmenter's parts in this process, and the preset as a job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faster_coco_eval.core import mask as coco_masks

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import data, export, image_cache, lite0, masks, segment, segment_card, segmenter, view, warp
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run

ALONE = Ranks(0, 1, torch.device("cpu"))
INDEX = {1: 0, 2: 1}
EQUAL = torch.ones(3)
STEPS = {"budget_minutes": 0, "show_steps": True, "checkpoint_minutes": 1000, "eval_share": 0, "batch_size": 4}
SMALL = {**STEPS, "architecture": "unet", "net_width": 8}


def shape(kind: int, x: float, y: float, w: float, h: float, **more: Any) -> dict[str, Any]:
    ring = [x, y, x + w, y, x + w, y + h, x, y + h]
    return {"category_id": kind, "bbox": [x, y, w, h], "area": w * h, "segmentation": [ring], **more}


@pytest.fixture(scope="module")
def outlines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.outlines(tmp_path_factory.mktemp("versions") / "outlines", train=8, val=4, size=(96, 64))


def task(version: Path, cache: Path, **params: Any) -> segment.Segmentation:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return segment.Segmentation(run, segment_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE)


# ---- masks -----------------------------------------------------------------------------------------------------


def test_masks_are_drawn_at_the_wanted_size_with_smaller_shapes_on_top(tmp_path):
    folder = versions.write(
        tmp_path / "two", task="detection", classes=["a", "b"],
        images=[{"path": "0.png", "width": 40, "height": 20, "split": "train"}],
        shapes=[{"image": 0, "class": 1, **shape(2, 4, 4, 8, 8)}, {"image": 0, "class": 0, **shape(1, 0, 0, 30, 16)}],
    )  # fmt: skip
    version = data.read(folder)

    made = masks.open_or_make(
        version, masks.read(version), tmp_path / "cache", width=80, height=80, resize="letterbox", boxes="whole"
    )

    drawn = made.rows([0])[0, ..., 0]
    assert (drawn[:20] == masks.IGNORED).all()  # the frame
    assert drawn[20 + 16, 16] == 2
    assert drawn[20 + 28, 50] == 1
    assert drawn[20 + 38, 70] == masks.GROUND


@pytest.mark.parametrize(("boxes", "corner", "centre"), [("ellipse", 0, 1), ("whole", 1, 1), ("ignore", 255, 255)])
def test_masks_let_something_stand_for_a_box(boxes, corner, centre):
    box = shape(1, 2, 2, 16, 16, attributes={"shape": "bbox"})

    drawn = masks.draw([box], (20, 20), (20, 20), INDEX, boxes=boxes)

    assert (drawn[2, 2], drawn[10, 10]) == (corner, centre)


def test_masks_leave_out_crowds_but_not_what_is_outlined_in_them():
    shapes = [shape(1, 0, 0, 20, 20, iscrowd=1), shape(2, 5, 5, 5, 5)]

    drawn = masks.draw(shapes, (20, 20), (20, 20), INDEX, boxes="whole")

    assert (drawn[1, 1], drawn[7, 7]) == (masks.IGNORED, 2)


def test_masks_read_runs_and_outlines_of_several_rings_alike():
    rings = [[2, 2, 8, 2, 8, 8, 2, 8], [12, 12, 18, 12, 18, 18, 12, 18]]
    runs = coco_masks.merge(coco_masks.frPyObjects(rings, 20, 20))
    given = {**shape(1, 2, 2, 16, 16), "segmentation": rings}

    drawn = masks.draw([given], (20, 20), (40, 40), INDEX, boxes="whole")
    from_runs = masks.draw([{**given, "segmentation": runs}], (20, 20), (40, 40), INDEX, boxes="whole")

    assert (drawn == 1).sum() == (from_runs == 1).sum() == 2 * 12 * 12
    assert drawn[20, 20] == masks.GROUND


# ---- views -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("windowed", [False, True])
def test_warp_moves_masks_with_their_images(windowed):
    seen = view.View(64, 48, "stretch", (32, 32) if windowed else (64, 48), (8,), 4, 0)
    truth = torch.zeros(4, 48, 64, dtype=torch.uint8)
    truth[:, 10:30, 20:50] = 1
    pixels = torch.where(truth == 1, 255, image_cache.GREY_FILL)[..., None].expand(-1, -1, -1, 3).contiguous()
    boxes, valid = torch.tensor([[[20.0, 10, 50, 30]]] * 4), torch.ones(4, 1, dtype=torch.bool)
    params = {"scale_jitter": 0.5, "flip": 0.5, "vertical_flip": 0.5, "light_jitter": 0.0}

    sight = warp.Warp.from_draws(warp.draw(params, torch.Generator().manual_seed(1), 4), seen, boxes, valid)
    images, moved = sight.images(pixels), sight.masks(truth)
    cut, shown = sight.boxes(boxes, valid)

    white = images.mean(1) > (image_cache.GREY_FILL + 255) / 2 / lite0.STD - lite0.MEAN / lite0.STD
    assert (white != (moved == 1)).float().mean() < 0.02  # edges apart
    assert windowed or (moved == masks.IGNORED).any()  # what lies outside
    for place in shown[:, 0].nonzero()[:, 0].tolist():
        rows, columns = (moved[place] == 1).nonzero().T
        edges = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
        assert torch.tensor(edges) == pytest.approx(cut[place, 0], abs=1.5)


# ---- loss and figures ------------------------------------------------------------------------------------------


def test_segmenter_losses_are_nothing_where_all_is_right_and_do_not_see_what_is_ignored():
    truth = torch.zeros(2, 8, 8, dtype=torch.int64)
    truth[:, 2:5, 2:5] = 1
    truth[0, 6:] = masks.IGNORED
    right = 20.0 * torch.nn.functional.one_hot(truth.clamp(max=1), 3).permute(0, 3, 1, 2).float()
    elsewhere = right.clone()
    elsewhere[0, :, 6:] = torch.rand(3, 2, 8)
    wrong = right.roll(1, 1)

    assert [float(part) for part in segmenter.losses(right, truth, EQUAL)] == pytest.approx([0, 0], abs=1e-3)
    assert [float(part) for part in segmenter.losses(elsewhere, truth, EQUAL)] == pytest.approx([0, 0], abs=1e-3)
    assert [float(part) for part in segmenter.losses(wrong, truth, EQUAL)] == pytest.approx([20, 1], abs=1e-3)


def test_segmenter_losses_count_pixels_of_rare_classes_more(outlines, tmp_path):
    counts = np.bincount(task(outlines, tmp_path / "cache").masks.rows(list(range(8))).ravel(), minlength=5)[:5]
    truth = torch.tensor([[[0, 0, 0, 1]]])
    logits = torch.zeros(1, 2, 1, 4)
    logits[:, 0] = 2.0  # all is called ground

    weights = task(outlines, tmp_path / "cache").class_weights
    flat, _ = segmenter.losses(logits, truth, torch.ones(2))
    weighted, _ = segmenter.losses(logits, truth, torch.tensor([1.0, 9.0]))

    assert weights.tolist() == pytest.approx(np.sqrt(counts.max() / counts).clip(max=10).tolist(), rel=1e-5)
    assert float(weighted) > float(flat)


def test_segmenter_losses_of_an_image_that_is_ignored_whole_are_nothing():
    truth = torch.full((1, 4, 4), masks.IGNORED)

    assert [float(part) for part in segmenter.losses(torch.rand(1, 2, 4, 4), truth, torch.ones(2))] == [0, 0]


def test_segment_figures_are_means_over_what_is_there():
    truth = np.array([[0, 0, 1, 1], [0, 0, 1, 255]], np.uint8)
    answers = np.array([[0, 2, 1, 1], [0, 0, 0, 1]])

    found = segment.figures(segment.pairs(truth, answers, 3), ["cell", "other"])

    assert found["val/iou/cell"] == pytest.approx(2 / 3)
    assert found["val/miou"] == pytest.approx((3 / 5 + 2 / 3) / 2)
    assert found["val/pixel_accuracy"] == pytest.approx(5 / 7)
    assert "val/iou/other" not in found


# ---- networks --------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "size"), [("unet", (48, 80)), ("stride 2", (48, 80)), ("stride 4", (64, 96))], ids=str
)
def test_export_answers_as_the_segmenter_does(tmp_path, name, size):
    torch.manual_seed(0)
    strides = segmenter.STRIDES[name == "stride 4" :]
    small = {"width": 12}  # rounded to what group norm can share out
    model = segmenter.UNet(3, **small) if name == "unet" else segmenter.Segmenter(lite0.Lite0(strides), 3, **small)
    samples = torch.rand(3, 3, *size)

    export.write(model.eval(), tmp_path, outputs=("logits",), samples=samples, metadata={})  # compares both

    step = 4 if name == "stride 4" else 2
    assert model(samples).shape == (3, 3, size[0] // step, size[1] // step)
    assert json.loads((tmp_path / "model.json").read_text())["verify"]["max_abs_diff"] < 1e-3


# ---- the preset ------------------------------------------------------------------------------------------------


def test_segment_preset_refuses_a_version_it_can_draw_no_masks_from(tmp_path):
    bare = versions.squares(tmp_path / "bare", train=2, val=1, boxes=False)
    boxed = versions.squares(tmp_path / "boxed", train=2, val=1)

    with pytest.raises(Refused, match=r"bare has no outlines yet\. Annotate some images, then train"):
        task(bare, tmp_path / "cache")
    with pytest.raises(Refused, match=r"boxed has only boxes.*Choose ellipse or whole"):
        task(boxed, tmp_path / "cache", boxes="ignore")


def test_segment_preset_says_what_stands_for_boxes(tmp_path, capsys):
    task(versions.squares(tmp_path / "boxed", train=2, val=1), tmp_path / "cache", boxes="whole")

    assert "6 of 6 objects have no outline: its box stands for each" in capsys.readouterr().out


def test_segment_preset_learns_the_same_on_two_lanes_as_on_one(outlines, tmp_path):
    one = task(outlines, tmp_path / "cache")
    batch, draws = one.load([0, 1, 2, 3]), one.draw(torch.Generator().manual_seed(0), 4)

    with torch.no_grad():
        whole = one.loss(one.model, batch, draws, ALONE)
    halves = [
        one.loss(one.model, tuple(part[at] for part in batch), {n: d[at] for n, d in draws.items()}, ALONE)
        for at in (slice(0, 2), slice(2, 4))
    ]

    for name, value in whole.items():
        assert sum(half[name].item() for half in halves) / 2 == pytest.approx(value.item(), rel=1e-5)


def test_segment_preset_loss_goes_down_on_a_batch_it_sees_again(outlines, tmp_path):
    one = task(outlines, tmp_path / "cache", lr=0.01)
    batch, draws = one.load([0, 1]), one.draw(torch.Generator().manual_seed(0), 2)
    optimizer = one.optimizer()
    losses = []
    for _step in range(25):
        loss = sum(one.loss(one.model, batch, draws, ALONE).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert losses[-1] < 0.6 * losses[0]


@pytest.mark.proof
def test_segment_preset_goes_on_after_a_suspend_and_its_export_answers_like_torch(tmp_path, outlines):
    straight = Job(tmp_path / "straight", outlines, "segment", {**SMALL, "steps": 6})
    assert straight.run()[0] == 0

    cut = Job(tmp_path / "cut", outlines, "segment", {**SMALL, "steps": 6})
    with cut.start() as process:
        for line in process.stdout:
            if "step 2 " in line:
                cut.request("suspend")
    assert process.returncode == 75
    cut.request("")
    code, log = cut.run()

    assert code == 0, log
    assert "restored from step-" in log
    figures = [json.loads((job.outputs / "metrics.json").read_text()) for job in (straight, cut)]
    assert figures[0]["val/miou"] == figures[1]["val/miou"]
    about = json.loads((cut.outputs / "model" / "model.json").read_text())
    assert (about["task"], about["output"]) == ("segmentation", {"logits": "logits"})
    assert [entry["name"] for entry in about["classes"]] == ["disc", "square", "triangle", "star"]
    assert about["verify"]["samples"] == 4
    judged = evaluate(a_run(tmp_path / "judged", cut.outputs / "model", outlines, split="val"))
    assert judged["summary"]["miou"] == pytest.approx(figures[1]["val/miou"], abs=0.01)  # images of the input's size


@pytest.mark.long
@pytest.mark.proof
def test_segment_preset_is_paused_continued_and_finished_early(tmp_path, outlines):
    job = Job(tmp_path / "job", outlines, "segment", {**SMALL, "steps": 100_000})
    words = iter([("step 2 ", "pause"), ("paused at step", ""), ("continued at step", "finish")])
    awaited, command = next(words)

    with job.start() as process:
        for line in process.stdout:
            if awaited in line:
                job.request(command)
                awaited, command = next(words, ("\0", ""))

    assert process.returncode == 0
    assert (job.outputs / "model" / "model.onnx").exists()
    assert job.curve("phase")[-1] == "exporting"
    assert max(job.curve("progress")) < 1
