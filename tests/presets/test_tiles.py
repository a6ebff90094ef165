"""Large images in tiles: what is learned from, looked at and put together."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from inference.evaluation.evaluator.__main__ import evaluate
from tests.inference.running import a_run
from tests.presets import versions
from tests.presets.jobs import Job
from training.presets import data, detect, detect_card, image_cache, tiles, view, warp
from training.presets.ranks import Ranks
from training.presets.run import Refused, Run
from training.presets.tiling.boxes import Parts

AUTO = {"width": 0, "height": 0, "resize": "auto", "strides": "auto", "budget_minutes": 0, "tile": 320}
ALONE = Ranks(0, 1, torch.device("cpu"))


@pytest.fixture(scope="module")
def symbols(tmp_path_factory) -> Path:
    """A few large pictures with small things on them."""
    return versions.symbols(tmp_path_factory.mktemp("symbols") / "symbols", train=5, val=2)


def task(version: Path, cache: Path, monkeypatch, **params: object) -> detect.Detection:
    monkeypatch.setenv("AIP_DATASET_DIR", str(version))
    for name in ("CACHE", "OUTPUT", "CHECKPOINT"):
        monkeypatch.setenv(f"AIP_{name}_DIR", str(cache))
    return detect.Detection(Run.from_environment(), detect_card.CARD.read({"tile": 160, **params}), ALONE)


def test_blocks_give_any_part_of_an_image_at_its_own_size(tmp_path):
    rng = np.random.default_rng(1)
    sizes = [(70, 50), (33, 96)]
    made = [rng.integers(0, 256, (height, width, 3), dtype=np.uint8) for width, height in sizes]
    images = [data.Image(f"{n}.png", str(n), *size, "train", None) for n, size in enumerate(sizes)]
    version = data.Version(tmp_path, "", [], images)

    blocks = tiles.open_or_make(version, tmp_path, lambda row: made[row], name="parts", side=32, channels=3)
    inner, across, beyond = blocks.part(0, 5, 7, 60, 40), blocks.part(1, -4, 90, 20, 20), blocks.part(0, 80, 0, 9, 9)

    assert (inner == made[0][7:47, 5:65]).all()
    assert (across[:6, 4:] == made[1][90:, :16]).all()
    assert (across[6:] == image_cache.GREY_FILL).all()
    assert (beyond == image_cache.GREY_FILL).all()


def test_tiled_view_has_the_images_own_size_and_refuses_another():
    own = [np.array([[0, 0, 20, 20], [0, 0, 5, 5]], np.float32)]

    seen = view.choose([(4000, 3000)], own, AUTO)
    again = view.choose([(4000, 3000)], own, AUTO, before=view.View.from_dict(json.loads(json.dumps(seen.__dict__))))
    other = view.choose([(4000, 3000)], own, {**AUTO, "tile": 256}, before=seen)

    assert (seen.input_size, seen.window, seen.width) == ((320, 320), (320, 320), 480)
    assert (seen.objects, seen.lost) == (2, 1)
    assert again == seen
    assert other.tile == 256
    assert "tiles of 320×320 at the images' own size" in "".join(seen.lines())
    with pytest.raises(Refused, match="leave out width and height"):
        view.choose([(4000, 3000)], own, {**AUTO, "width": 640})


def test_regions_to_learn_from_show_every_object_and_a_few_empty_tiles(symbols, tmp_path, monkeypatch):
    one = task(symbols, tmp_path, monkeypatch)
    seen = {row: np.zeros(len(one.fitted[row]), bool) for row in one.learn}
    for region in one.regions:
        inside = region.inside(one.fitted[region.row])
        seen[region.row] |= ((inside[:, :2] >= 0) & (inside[:, 2:] <= one.view.width)).all(1)
    tiled = one.tiles.count(one.learn)

    assert all(shown.all() for shown in seen.values())
    busy = sum(one.tiles._shown(row, place).any() for row in one.learn for place in one.tiles.corners(row))
    assert busy < len(one.regions) <= np.ceil(busy / (1 - tiles.EMPTY)) + 1 < tiled


def test_tiled_batch_shows_objects_at_their_own_size_where_the_boxes_say(symbols, tmp_path, monkeypatch):
    one = task(symbols, tmp_path, monkeypatch, scale_jitter=0.0, light_jitter=0.0)
    batch = one.load(list(range(6)))
    draws = one.draw(torch.Generator().manual_seed(1), 6)

    seen = warp.Warp.from_draws(draws, one.view, batch[1], batch[3])
    images = seen.images(batch[0])
    boxes, valid = seen.boxes(batch[1], batch[3])

    assert images.shape == (6, 3, 160, 160)
    assert valid.any(1).sum() >= 4
    sides = boxes[valid][:, 2:] - boxes[valid][:, :2]
    assert float(sides.median()) >= 19  # of symbols of 20 to 44 px


def test_tiles_joined_find_what_is_there_as_the_image_shows_it(symbols, tmp_path, monkeypatch):
    one = task(symbols, tmp_path, monkeypatch)
    known, row = one.tiles, one.score[0]
    parts = Parts(known.sizes[row], (160, 160))
    for left, top in known.corners(row):  # a model that sees every object that a tile shows half of
        moved = one.truth[row][0] - np.array([left, top] * 2, np.float32)
        cut = moved.clip(0, 160)
        share = (cut[:, 2:] - cut[:, :2]).prod(1) / (moved[:, 2:] - moved[:, :2]).prod(1)
        own = np.eye(5, dtype=np.float32)[one.truth[row][1]] * np.where(share > 0.5, 0.5 + share / 4, 0)[:, None]
        one.add_tile(parts, (left, top), [cut, own.astype(np.float32)])

    found = one.detections(row, parts.joined(5))

    assert one.figures(found, [row])["val/ap"] == 1.0


@pytest.mark.proof
def test_tiled_preset_goes_on_after_a_suspend_and_is_judged_as_it_judged_itself(tmp_path, symbols):
    params = {"steps": 12, "budget_minutes": 0, "tile": 160, "batch_size": 4, "eval_share": 0, "show_steps": True}
    cut = Job(tmp_path / "cut", symbols, "detect", params)
    with cut.start() as process:
        for line in process.stdout:
            if "step 2 " in line:
                cut.request("suspend")
    assert process.returncode == 75
    cut.request("")
    code, log = cut.run()

    assert code == 0, log
    figures = json.loads((cut.outputs / "metrics.json").read_text())
    about = json.loads((cut.outputs / "model" / "model.json").read_text())
    assert about["input"]["tile"] == {"overlap": 0.2}
    assert (about["input"]["width"], about["input"]["height"]) == (160, 160)
    with Image.open(next((cut.outputs / "samples" / "truth").glob("*.jpg"))) as drawn:
        assert drawn.width == drawn.height
    judged = evaluate(a_run(tmp_path / "judged", cut.outputs / "model", symbols, split="val"))["summary"]
    assert judged["ap50"] == pytest.approx(figures["val/ap50"], abs=0.02)


def test_images_of_more_tiles_than_can_be_put_together_are_refused(symbols, tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "MAX_TILES", 3)

    with pytest.raises(Refused, match=r"An image has \d+ tiles of 32 pixels, more than 3: choose a larger tile"):
        tiles.Tiles(data.read(symbols), [], 32, 0.5, tmp_path)
