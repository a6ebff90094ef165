"""Segmenters on large images: the maps of tiles, put together as if all of the image had been seen at once."""

from __future__ import annotations

import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faster_coco_eval.core import mask as coco_masks
from PIL import Image

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json, oip
from inference.kit.task_kinds.segmentation import runs
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.inference import pictures, tiny
from tests.inference import versions as served_versions
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import data, distill, lite0, masks, segment, segment_card, tiles
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run
from training.presets.tiling.grid import grid
from training.presets.tiling.maps import Blend

ALONE = Ranks(0, 1, torch.device("cpu"))
SMALL = {"budget_minutes": 0, "steps": 1, "batch_size": 4, "architecture": "unet", "net_width": 8, "tile": 64}


@pytest.fixture(scope="module")
def outlines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return versions.outlines(tmp_path_factory.mktemp("versions") / "outlines", train=6, val=3, size=(210, 150))


def task(version: Path, cache: Path, **params: Any) -> segment.Segmentation:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return segment.Segmentation(run, segment_card.CARD.read({**SMALL, **params}), ALONE)


def tiled(folder: Path, overlap: float, **how: Any) -> Path:
    """The tiny segmenter, which looks at tiles of 64 pixels."""
    made = tiny.segmenter(folder, 64, **how)
    about = json.loads((made / "model.json").read_text())
    about["input"]["tile"] = {"overlap": overlap}
    (made / "model.json").write_text(json.dumps(about))
    return made


async def answered(folder: Path, picture: bytes) -> list[dict[str, Any]]:
    service = Service(Settings(model_dir=folder, max_batch=3), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        answer = await service.predict(picture, Requested(), Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()
    return answer["predictions"]


def soft_picture(size: int = 192) -> bytes:
    """Patches of colour that run into each other."""
    coarse = np.random.default_rng(5).integers(0, 256, (7, 7, 3), dtype=np.uint8)
    return pictures.encoded(Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC))


# ---- blending ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", [0.0, 0.25, 0.6])
@pytest.mark.parametrize("cell", [1, 2, 4])
async def test_map_of_tiles_is_that_of_the_whole_picture(tmp_path, cell, overlap):
    picture = soft_picture()

    whole = await answered(tiny.segmenter(tmp_path / "whole", 192, cell), picture)
    parts = await answered(tiled(tmp_path / "tiled", overlap, cell=cell), picture)

    assert len(whole) >= 2
    assert [one["name"] for one in parts] == [one["name"] for one in whole]
    for ours, theirs in zip(parts, whole, strict=True):
        assert (coco_masks.decode(ours["mask"]) != coco_masks.decode(theirs["mask"])).mean() < 1e-4
        assert ours["score"] == pytest.approx(theirs["score"], abs=1e-5)


async def test_map_of_coarse_tiles_is_nearly_that_of_the_whole_picture(tmp_path):
    picture = soft_picture()

    whole = await answered(tiny.segmenter(tmp_path / "whole", 192, 8), picture)
    parts = await answered(tiled(tmp_path / "tiled", 0.25, cell=8), picture)

    for ours, theirs in zip(parts, whole, strict=True):
        assert (coco_masks.decode(ours["mask"]) != coco_masks.decode(theirs["mask"])).mean() < 0.02


async def test_map_of_a_picture_smaller_than_a_tile_has_its_size(tmp_path):
    picture = pictures.with_boxes({(8, 0, 16, 10): "red"}, (41, 23))

    [red] = await answered(tiled(tmp_path, 0.25, cell=2), picture)

    assert red["mask"]["size"] == [23, 41]
    assert red["box"] == pytest.approx([8, 0, 16, 10], abs=1)


async def test_open_inference_protocol_gives_the_maps_of_tiles(tmp_path):
    picture, folder = soft_picture(), tiled(tmp_path, 0.25)
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    sent = oip.InferRequest("", {}, {"images": [picture] * 2}, (), binary=False, parameters={})
    try:
        body, _ = await service.infer(sent, Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()

    expected = await answered(folder, picture)
    assert [json.loads(one) for one in json.loads(body)["outputs"][0]["data"]] == [expected] * 2


def test_tiles_that_disagree_pass_into_each_other_without_a_seam():
    """The left tile says 1 by two logits, the right one 0 by one: where both look, one wins nearer to its middle."""
    drawn = np.zeros((64, 112), int)
    blend = Blend((112, 64), (64, 64), lambda top, rows: drawn.__setitem__(slice(top, top + len(rows)), rows))
    for left, sure in ((0, -2.0), (48, 1.0)):
        blend.add((left, 0), np.stack([np.full((32, 32), sure, np.float32), np.zeros((32, 32), np.float32)]))
    likely = blend.end()

    turn = 48 + 16 * 2 / 3  # of the sixteen pixels that both show
    assert (drawn[:, : int(turn) - 1] == 1).all()
    assert (drawn[:, int(turn) + 2 :] == 0).all()
    assert likely == pytest.approx({0: 0.73, 1: 0.87}, abs=0.03)


def test_blending_a_large_image_keeps_a_band_of_it_in_memory():
    size, tile, classes = (6000, 4000), (512, 512), 6
    logits = np.random.default_rng(0).normal(size=(classes, 256, 256)).astype(np.float32)
    rows: list[int] = []

    tracemalloc.start()
    blend = Blend(size, tile, lambda top, strip: rows.append(len(strip)))
    for place in grid(*size, tile, 0.2):
        blend.add(place, logits)
    blend.end()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert sum(rows) == size[1]
    assert peak < 160 << 20  # all logits, at their stride, are 144 MiB, at that of pixels 576


def test_evaluation_of_a_segmenter_looks_at_tiles_as_the_service_does(tmp_path):
    version = served_versions.detection(tmp_path / "v")

    whole = evaluate(a_run(tmp_path / "whole", tiny.segmenter(tmp_path / "a", 128), version, batch=3))
    parts = evaluate(a_run(tmp_path / "parts", tiled(tmp_path / "b", 0.5), version, batch=3))

    assert parts["summary"] == whole["summary"]
    assert parts["confusion"] == whole["confusion"]


# ---- learning ------------------------------------------------------------------------------------------------


def test_blocks_of_masks_are_what_the_whole_mask_shows(outlines, tmp_path):
    version = data.read(outlines)
    shapes = masks.read(version)

    blocks = masks.blocks(version, shapes, tmp_path, side=64, boxes="whole")

    whole = masks.draw(shapes[2], (210, 150), (210, 150), version.class_index, boxes="whole")
    assert (blocks.part(2, 30, 20, 150, 120)[..., 0] == whole[20:140, 30:180]).all()
    assert (blocks.part(2, 205, 140, 20, 20)[10:, :, 0] == masks.IGNORED).all()


def test_small_shapes_are_painted_as_their_whole_masks_say():
    rng = np.random.default_rng(4)
    shapes = []
    for kind in (1, 2, 1, 2):
        ring = (rng.uniform(-10, 90, 2) + rng.uniform(0, 40, (7, 2))).ravel().tolist()
        shapes.append({"category_id": kind, "bbox": [0, 0, 1, 1], "segmentation": [ring]})
    own = masks.covered(shapes[0], 1, 1, (120, 80), "whole")
    shapes.append({"category_id": 2, "bbox": [0, 0, 1, 1], "segmentation": runs.encode(~own)})

    drawn = masks.draw(shapes, (120, 80), (120, 80), {1: 0, 2: 1}, boxes="whole")

    expected = np.zeros((80, 120), np.uint8)
    for one in shapes:
        expected[masks.covered(one, 1, 1, (120, 80), "whole")] = one["category_id"]
    assert (drawn == expected).all()
    assert len(np.unique(drawn)) > 1


def test_tiles_of_a_segmenter_show_objects_of_which_any_part_lies_on_them(outlines, tmp_path):
    one = task(outlines, tmp_path / "cache")
    row = one.learn[0]
    drawn = masks.draw(one_shapes := masks.read(one.version)[row], (210, 150), (210, 150), one.version.class_index,
                       boxes="whole")  # fmt: skip

    assert one_shapes
    for left, top in one.tiles.corners(row):
        if drawn[top : top + 64, left : left + 64].any():
            assert one.tiles._shown(row, (left, top)).any()


def test_batch_of_regions_has_images_masks_and_boxes_that_fit_each_other(outlines, tmp_path):
    one = task(outlines, tmp_path / "cache")

    pixels, drawn, boxes, valid = one.load(list(range(one.rows)))

    assert pixels.shape == (one.rows, 96, 96, 3)
    assert drawn.shape == (one.rows, 96, 96)
    assert one.rows > len(one.learn)
    for place, region in enumerate(one.regions):
        whole = masks.draw(masks.read(one.version)[region.row], (210, 150), (210, 150), one.version.class_index,
                           boxes="whole")  # fmt: skip
        own = whole[region.top : region.top + 96, region.left : region.left + 96]
        assert (drawn[place].numpy() == own).all()
        covered = np.zeros((96, 96), bool)
        for x0, y0, x1, y1 in boxes[place][valid[place]].numpy():
            covered[int(y0) : int(np.ceil(y1)) + 1, int(x0) : int(np.ceil(x1)) + 1] = True
        assert (covered | (own == 0)).all()


def test_score_of_a_tiled_segmenter_is_over_the_images_own_pixels(outlines, tmp_path, monkeypatch):
    """A model that knows the truth, at its stride, is right but for the outlines."""
    one = task(outlines, tmp_path / "cache")
    known = {}
    for row in one.score:
        for (left, top), pixels in zip(
            one.tiles.corners(row), one.tiles.pixels(row, one.tiles.corners(row)), strict=True
        ):
            there = one.blocks.part(row, left, top, 64, 64)[..., 0]
            named = np.where(there == masks.IGNORED, 0, there)
            known[pixels.tobytes()] = np.eye(5, dtype=np.float32)[named][::2, ::2].transpose(2, 0, 1)
    asked: list[bytes] = []

    def noted(rows: np.ndarray, device: torch.device) -> torch.Tensor:
        asked.extend(pixels.tobytes() for pixels in rows)
        return torch.zeros(len(rows))

    monkeypatch.setattr(lite0, "normal", noted)

    class Knows(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(np.stack([known[asked.pop(0)] for _ in x]))

    counts = sum(one._counted_in_tiles(Knows(), row, 3) for row in one.score)

    assert counts.sum() == len(one.score) * 210 * 150
    assert segment.figures(counts, one.names)["val/miou"] > 0.9


def test_teacher_that_looks_at_whole_images_is_refused_by_a_student_of_tiles(outlines, tmp_path, monkeypatch):
    class Whole:
        tiled, architecture = False, "unet"

    monkeypatch.setattr(distill, "chosen", lambda *given, **more: Whole())

    with pytest.raises(Refused, match="The teacher looks at whole images, this training at tiles: change tile"):
        task(outlines, tmp_path / "cache")


def test_images_of_too_many_tiles_are_refused_for_segmenters_as_well(outlines, tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "MAX_TILES", 3)

    with pytest.raises(Refused, match=r"An image has \d+ tiles of 64 pixels, more than 3"):
        task(outlines, tmp_path / "cache")


@pytest.mark.long
@pytest.mark.proof
async def test_tiled_segmenter_goes_on_after_a_suspend_and_is_judged_and_served_as_it_scored_itself(tmp_path):
    version = versions.squares(tmp_path / "squares", train=10, val=4, enlarged=3)
    params = {**SMALL, "steps": 60, "lr": 0.01, "ema": 0.5, "eval_share": 0, "show_steps": True}
    cut = Job(tmp_path / "cut", version, "segment", params)
    with cut.start() as process:
        for line in process.stdout:
            if "step 2 " in line:
                cut.request("suspend")
    assert process.returncode == 75
    cut.request("")
    code, log = cut.run()

    assert code == 0, log
    assert "learning from tiles of 64×64" in log
    figures = json.loads((cut.outputs / "metrics.json").read_text())
    model = cut.outputs / "model"
    about = json.loads((model / "model.json").read_text())
    assert about["input"]["tile"] == {"overlap": 0.2}
    assert (about["input"]["width"], about["input"]["height"]) == (64, 64)
    with Image.open(next((cut.outputs / "samples" / "truth").glob("*.jpg"))) as drawn:
        assert drawn.width == drawn.height
    assert figures["val/iou/bright"] > 0.05  # it has learned something
    judged = evaluate(a_run(tmp_path / "judged", model, version, split="val"))["summary"]
    assert judged["miou"] == pytest.approx(figures["val/miou"], abs=1e-3)
    assert judged["pixel_accuracy"] == pytest.approx(figures["val/pixel_accuracy"], abs=1e-3)
    lines = (tmp_path / "judged" / "outputs" / "predictions.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        served = await answered(model, (version / "images" / line["path"]).read_bytes())
        assert {one["class_id"]: one["mask"] for one in served} == {
            one["class_id"]: one["mask"] for one in line["masks"]
        }
