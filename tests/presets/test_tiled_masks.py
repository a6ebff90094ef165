"""Instance segmenters on large images: objects of tiles, each once and with one mask."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from faster_coco_eval.core import mask as coco_masks
from PIL import Image, ImageDraw

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.inference import pictures, tiny
from tests.inference import versions as served_versions
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import instances, instances_card, masks, yolact
from training.presets.ranks import Ranks
from training.presets.run import Run
from training.presets.tiling import boxes, runs
from training.presets.tiling.boxes import Parts
from training.presets.tiling.grid import grid
from training.presets.tiling.masks import patch

ALONE = Ranks(0, 1, torch.device("cpu"))
SMALL = {
    **{"budget_minutes": 0, "batch_size": 4, "architecture": "lite0-scratch", "head_width": 16, "prototypes": 8},
    **{"tile": 96, "tile_overlap": 0.4},
}


@pytest.fixture(scope="module")
def outlines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("versions") / "outlines"
    return versions.large_outlines(folder, train=6, val=3, size=(320, 240), shapes=(4, 8))


def task(version: Path, cache: Path, **params: Any) -> instances.Instances:
    run = Run.from_environment({"AIP_DATASET_DIR": str(version), "AIP_CACHE_DIR": str(cache)})
    return instances.Instances(run, instances_card.CARD.read({**SMALL, "steps": 1, **params}), ALONE)


def tiled(folder: Path, overlap: float, cell: int = 8) -> Path:
    """The tiny instance segmenter, which looks at tiles of 64 pixels."""
    made = tiny.instancer(folder, 64, cell)
    about = json.loads((made / "model.json").read_text())
    about["input"]["tile"] = {"overlap": overlap}
    (made / "model.json").write_text(json.dumps(about))
    return made


async def answered(folder: Path, picture: bytes, **requested: Any) -> list[dict[str, Any]]:
    service = Service(Settings(model_dir=folder, max_batch=3), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        answer = await service.predict(picture, Requested(**requested), Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()
    return answer["predictions"]


def filled(one: dict[str, Any], size: tuple[int, int]) -> np.ndarray:
    """The pixels in the polygon of a prediction."""
    image = Image.new("1", size)
    for ring in one["polygon"]:
        ImageDraw.Draw(image).polygon(ring, fill=1)
    return np.asarray(image)


def overlap_of(one: np.ndarray, other: np.ndarray) -> float:
    return float((one & other).sum() / max((one | other).sum(), 1))


# ---- putting together ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_objects_of_tiles_are_those_of_the_whole_picture(tmp_path, seed):
    rng = np.random.default_rng(seed)
    cells = rng.choice(100, 14, replace=False)  # no two of them meet: every second cell of eight pixels
    squares = {}
    for cell, colour in zip(cells.tolist(), rng.choice(tiny.COLOURS, 14).tolist(), strict=True):
        x, y = 16 * (cell % 10), 16 * (cell // 10)
        squares[x, y, x + int(rng.integers(5, 9)), y + int(rng.integers(5, 9))] = colour
    picture = pictures.with_boxes(squares, (160, 160))

    whole = await answered(tiny.instancer(tmp_path / "whole", 160), picture)
    parts = await answered(tiled(tmp_path / "tiled", 0.25), picture)

    theirs = {tuple(one["box"]): one for one in whole}
    assert len(theirs) == len(parts) >= 10
    for one in parts:
        other = theirs[tuple(one["box"])]
        assert (one["name"], one["score"]) == (other["name"], pytest.approx(other["score"], abs=1e-5))
        assert overlap_of(filled(one, (160, 160)), filled(other, (160, 160))) > 0.99


@pytest.mark.parametrize("radius", [20, 70, 130])
def test_disc_larger_than_its_tiles_is_put_together_from_all_its_parts(radius):
    """A model that sees what each tile shows of the disc, and draws it on cells of four pixels."""
    size, tile, middle = (320, 288), (96, 96), np.array([163.0, 141.0])
    parts = Parts(size, tile)
    for left, top in grid(*size, tile, 0.25):
        rows, columns = np.mgrid[0:24, 0:24] * 4 + 2
        inside = (radius - np.hypot(columns + left - middle[0], rows + top - middle[1])).astype(np.float32)
        shown = np.argwhere(inside > 0)
        if not len(shown):
            parts.add((left, top), np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros(0, np.int64))
            continue
        box = np.concatenate([middle - radius, middle + radius]).clip([left, top] * 2, [left + 96, top + 96] * 2)
        own = patch(np.ones(1, np.float32), inside[None], box, (left, top), 4)
        sure = np.float32([0.5 + len(shown) / 2000])
        parts.add((left, top), box[None].astype(np.float32), sure, np.zeros(1, np.int64), [own])

    found = parts.joined(1)

    strong = [one for one in range(len(found.boxes)) if found.scores[one, 0] >= 0.5]
    rows, columns = np.mgrid[0 : size[1], 0 : size[0]] + 0.5
    there = np.hypot(columns - middle[0], rows - middle[1]) < radius
    drawn = np.zeros(there.shape, bool)
    for one in strong:
        x0, y0 = np.floor(found.boxes[one, :2]).astype(int)
        x1, y1 = np.ceil(found.boxes[one, 2:]).astype(int)
        drawn[y0:y1, x0:x1] |= found.masks[one].drawn((x0, y0, x1, y1))
    assert len(strong) == 1
    assert found.boxes[0] == pytest.approx([*(middle - radius), *(middle + radius)], abs=1)
    assert overlap_of(drawn, there) > 0.96


def test_answers_to_tiles_beyond_all_bounds_are_the_likeliest(monkeypatch):
    """An untrained network answers hundreds of times on each tile, and tiles that overlap much are many."""
    monkeypatch.setattr(boxes, "MAX_BOXES", 2)  # an image of two tiles
    parts, filled = Parts((128, 64), (64, 64)), np.ones((1, 16, 16), np.float32)
    for left in (0, 64):
        found = np.array([[left + 4, y, left + 12, y + 8] for y in (0, 20, 40)], np.float32)
        scores = np.array([0.9, 0.2, 0.3], np.float32) - np.float32(left / 1000)
        own = [patch(score[None], filled, box, (left, 0), 4) for score, box in zip(scores, found, strict=True)]
        parts.add((left, 0), found, scores, np.zeros(3, np.int64), own)

    joined = parts.joined(1)

    assert joined.scores[:, 0].tolist() == pytest.approx([0.9, 0.3, 0.836, 0.236])
    assert [mask.logits.max() for mask in joined.masks] == pytest.approx(joined.scores[:, 0])


def test_runs_of_a_part_are_those_of_the_whole_mask():
    rng = np.random.default_rng(1)
    for share in (0.0, 0.1, 0.5, 0.95, 1.0):
        for height, width, left, top, more in ((9, 7, 3, 2, 4), (12, 5, 0, 0, 0), (1, 6, 2, 0, 0)):
            part = rng.random((height, width)) < share
            whole = np.zeros((top + height + more, left + width + more), bool)
            whole[top : top + height, left : left + width] = part

            made = runs.encode(part, at=(left, top), size=whole.shape[::-1])

            expected = coco_masks.encode(np.asfortranarray(whole, np.uint8))
            assert (made["size"], made["counts"]) == (expected["size"], expected["counts"].decode())


def test_evaluation_of_instances_looks_at_tiles_as_the_service_does(tmp_path):
    version = served_versions.detection(tmp_path / "v")

    whole = evaluate(a_run(tmp_path / "whole", tiny.instancer(tmp_path / "a", 128, 16), version, batch=3))
    parts = evaluate(a_run(tmp_path / "parts", tiled(tmp_path / "b", 0.5, 16), version, batch=3))

    assert parts["confusion"] == whole["confusion"]
    assert 0 < whole["summary"]["ap50"] < 1
    for name, figure in whole["summary"].items():
        assert parts["summary"][name] == pytest.approx(figure, abs=0.02)


# ---- learning ------------------------------------------------------------------------------------------------


def test_regions_number_the_objects_they_show_as_their_boxes_stand(outlines, tmp_path):
    one = task(outlines, tmp_path / "cache")

    pixels, boxes, _, valid, numbers = one.load(list(range(one.rows)))

    assert pixels.shape == (one.rows, 144, 144, 3)
    assert numbers.shape == (one.rows, 144, 144)
    for place, region in enumerate(one.regions):
        for index in valid[place].nonzero()[:, 0].tolist():
            rows, columns = (numbers[place] == index + 1).nonzero().T
            x0, y0, x1, y1 = boxes[place, index].tolist()
            if len(rows):  # it may lie below others
                assert columns.min() >= x0 - 1
                assert rows.min() >= y0 - 1
                assert columns.max() <= x1 + 1
                assert rows.max() <= y1 + 1
        assert numbers[place].max() in (*range(int(valid[place].sum()) + 1), masks.IGNORED)
        whole = masks.draw_objects(one.shapes[region.row], (320, 240), (320, 240), boxes="ellipse")
        own = whole[region.top : region.top + 144, region.left : region.left + 144]
        assert ((numbers[place].numpy() > 0) <= (own > 0)).all()


def test_more_objects_than_a_byte_can_number_are_told_apart_in_regions(tmp_path):
    shapes = []
    for place in range(600):
        x, y = 8 * (place % 30), 8 * (place // 30)
        ring = [x, y, x + 6, y, x + 6, y + 6, x, y + 6]
        shapes.append({"image": 0, "class": 0, "bbox": [x, y, 6, 6], "segmentation": [ring]})
    made = versions.write(
        tmp_path / "many", task="detection", classes=["dot"], shapes=shapes,
        images=[{"path": "0.png", "sha256": "0", "width": 240, "height": 160, "split": "train"}],
    )  # fmt: skip
    version = instances.data.read(made)
    drawn = masks.read(version)

    blocks = masks.blocks(version, drawn, tmp_path / "cache", side=64, boxes="whole", objects=True)

    shown = np.array([560, 3])
    numbers = masks.of_blocks(blocks.part(0, 0, 0, 240, 160), shown)
    for local, place in enumerate(shown.tolist(), start=1):
        x, y, width, height = drawn[0][place]["bbox"]
        assert (numbers[y : y + height, x : x + width] == local).all()
    assert (numbers > 0).sum() == 2 * 36
    assert (masks.of_blocks(blocks.part(0, 235, 155, 9, 9), shown)[5:] == masks.IGNORED).all()


def test_score_of_tiles_of_what_is_really_there_is_nearly_right(outlines, tmp_path):
    """A model that sees all of its tile: boxes and masks of the truth through the prototypes' coarse grid."""
    one = task(outlines, tmp_path / "cache")
    found = []
    for row in one.score:
        drawn = masks.draw_objects(one.shapes[row], (320, 240), (320, 240), boxes="ellipse")
        framed = np.pad(drawn, ((0, 96), (0, 96)))
        parts = Parts((320, 240), (96, 96))
        for left, top in one.tiles.corners(row):
            moved = one.truth[row][0] - np.array([left, top] * 2, np.float32)
            cut = moved.clip(0, 96)
            share = (cut[:, 2:] - cut[:, :2]).prod(1) / (moved[:, 2:] - moved[:, :2]).prod(1)
            sure = np.where(share > 0.3, 0.5 + share / 4, 0)[:, None].astype(np.float32)
            own = framed[top : top + 96, left : left + 96]
            shown = np.stack([own == place + 1 for place in range(len(moved))]).astype(np.float32)
            coarse = torch.nn.functional.avg_pool2d(torch.from_numpy(shown)[None], yolact.FINEST)[0] - 0.5
            scores = sure * np.eye(4, dtype=np.float32)[one.truth[row][1]]
            answers = [cut, scores, np.eye(len(moved), dtype=np.float32), coarse.numpy()]
            one.add_tile(parts, (left, top), answers)
        found += one.detections(row, parts.joined(4))

    figures = one.figures(found, one.score)

    assert figures["val/ap50"] == pytest.approx(1)
    assert figures["val/mask_ap50"] > 0.85  # what lies below others has lost parts of its outline
    assert len(found) <= sum(len(one.truth[row][0]) for row in one.score) + 2


@pytest.mark.long
@pytest.mark.proof
async def test_tiled_instances_go_on_after_a_suspend_and_are_judged_and_served_as_they_scored_themselves(tmp_path):
    version = versions.squares(tmp_path / "squares", train=10, val=4, enlarged=3)  # sides of 42 to 75 pixels
    params = {**SMALL, "head_width": 32, "tile": 128, "tile_overlap": 0.5, "steps": 200, "lr": 0.005, "ema": 0.9}
    cut = Job(tmp_path / "cut", version, "instances", {**params, "eval_share": 0, "show_steps": True})
    with cut.start() as process:
        for line in process.stdout:
            if "step 2 " in line:
                cut.request("suspend")
    assert process.returncode == 75
    cut.request("")
    code, log = cut.run()

    assert code == 0, log
    figures = json.loads((cut.outputs / "metrics.json").read_text())
    model = cut.outputs / "model"
    about = json.loads((model / "model.json").read_text())
    assert about["input"]["tile"] == {"overlap": 0.5}
    assert about["verify"]["max_abs_diff"] < 1e-2
    judged = evaluate(a_run(tmp_path / "judged", model, version, split="val"))["summary"]
    assert figures["val/mask_ap50"] > 0.2  # it has learned something
    assert judged["ap50"] == pytest.approx(figures["val/mask_ap50"], abs=0.02)
    assert judged["map"] == pytest.approx(figures["val/mask_ap"], abs=0.02)
    assert judged["box_map"] == pytest.approx(figures["val/ap"], abs=0.02)
    lines = (tmp_path / "judged" / "outputs" / "predictions.jsonl").read_text().splitlines()
    for line in map(json.loads, lines):
        served = await answered(model, (version / "images" / line["path"]).read_bytes(), score_threshold=0.01)
        first = served[: len(line["boxes"])]
        assert [one["score"] for one in first] == pytest.approx([box[1] for box in line["boxes"]])
        assert [one["polygon"] for one in first] == line["rings"]
