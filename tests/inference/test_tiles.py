"""Large pictures, looked at in tiles that overlap."""

from __future__ import annotations

import itertools
import json
import time
import tracemalloc
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from inference.evaluation.evaluator.__main__ import evaluate
from inference.kit.model_io import decode
from inference.kit.model_io.engine import Engine
from inference.kit.model_io.refusals import BadRequest
from inference.kit.model_io.requested import Requested
from inference.kit.models import model_json, oip
from inference.kit.prediction.predictor import AHEAD, Predictor
from inference.serving.server.service import Call, Service
from inference.serving.server.settings import Settings
from tests.cases import case_table
from tests.inference import pictures, tiny, versions
from tests.inference.running import a_run
from training.presets.tiling import boxes as joining
from training.presets.tiling.grid import grid

SQUARES = {(0, 0, 8, 8): "red", (48, 8, 56, 16): "green", (56, 8, 64, 16): "green", (104, 56, 112, 64): "blue"}


def tiled(folder: Path, overlap: float = 0.25, cell: int = 8) -> Path:
    """The tiny detector, which looks at tiles of 64 pixels."""
    made = tiny.detector(folder, 64, cell)
    description = json.loads((made / "model.json").read_text())
    description["input"]["tile"] = {"overlap": overlap}
    (made / "model.json").write_text(json.dumps(description))
    return made


async def answered(folder: Path, picture: bytes, **requested: str) -> dict:
    service = Service(Settings(model_dir=folder, max_batch=2), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    try:
        return await service.predict(
            picture, Requested.from_query(requested), Call(time.monotonic() + 30), lambda: None
        )
    finally:
        await service.stop()


def merged(boxes: list[list[float]], of: list[int], rects: list[list[int]], size: tuple[int, int]) -> list[list[float]]:
    """The boxes of the objects that are found, each once."""
    array = np.array(boxes, np.float32)
    scores = np.linspace(0.9, 0.5, len(boxes), dtype=np.float32)
    numbers, _ = joining.merged(
        array, scores, np.zeros(len(boxes), np.int64), np.array(of), np.array(rects, np.float32), size
    )
    return [array[numbers == number][0].tolist() for number in range(numbers.max() + 1)]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((50, 64), [(0, 0)]),
        ((112, 64), [(0, 0), (48, 0)]),
        ((70, 130), [(0, 0), (8, 0), (0, 32), (8, 32), (0, 68), (8, 68)]),
    ],
)
def test_tiles_cover_a_picture_and_begin_where_cells_do(size, expected):
    assert grid(*size, (64, 64), 0.25) == expected


@case_table("overlap", [0.0, 0.1, 0.2, 0.37, 0.9])
@case_table("side", [50, 64, 320])
def test_tiles_share_at_least_what_is_asked(side, overlap):
    for width in range(side, 9 * side, 37):
        starts = [left for left, _ in grid(width, side, (side, side), overlap)]
        assert all(after - before <= side * (1 - overlap) for before, after in itertools.pairwise(starts))
        assert width <= starts[-1] + side < width + 4


def test_object_that_two_tiles_see_whole_is_one():
    rects = [[0, 0, 100, 100], [60, 0, 160, 100]]

    objects = merged([[65, 10, 90, 40], [66, 10, 91, 40]], [0, 1], rects, (160, 100))

    assert objects == [[65, 10, 90, 40]]


def test_neighbours_in_what_tiles_share_stay_two():
    rects = [[0, 0, 100, 100], [60, 0, 160, 100]]

    objects = merged([[65, 10, 80, 40], [78, 10, 92, 40]], [0, 1], rects, (160, 100))

    assert len(objects) == 2


def test_object_cut_by_one_tile_has_the_box_of_the_tile_that_sees_it_whole():
    rects = [[0, 0, 100, 100], [60, 0, 160, 100]]

    objects = merged([[80, 10, 100, 40], [82, 11, 120, 40]], [0, 1], rects, (160, 100))

    assert objects == [[82, 11, 120, 40]]


def test_object_larger_than_a_tile_is_put_together_from_all_its_parts():
    rects = [[0, 0, 100, 100], [60, 0, 160, 100], [120, 0, 220, 100]]

    objects = merged([[20, 10, 100, 90], [60, 10, 160, 90], [120, 10, 200, 90]], [0, 1, 2], rects, (220, 100))

    assert objects == [[20, 10, 200, 90]]


async def test_service_answers_with_each_object_of_a_large_picture_once(tmp_path):
    answer = await answered(tiled(tmp_path), pictures.with_boxes(SQUARES, (112, 64)))

    by_box = {tuple(round(side) for side in row["box"]): row["name"] for row in answer["predictions"]}
    assert by_box == SQUARES
    assert len(answer["predictions"]) == 4
    assert answer["image"] == {"width": 112, "height": 64}
    with pytest.raises(BadRequest, match="looks at whole pictures"):
        await answered(tiled(tmp_path / "other"), pictures.plain(), region="0,0,5,5")


async def test_service_answers_small_and_empty_pictures_of_a_tiled_model(tmp_path):
    small = await answered(tiled(tmp_path), pictures.with_boxes({(8, 0, 16, 8): "red"}, (40, 24)))
    empty = await answered(tmp_path, pictures.plain("black", (200, 90)))

    assert [row["box"] for row in small["predictions"]] == [[8, 0, 16, 8]]
    assert empty["predictions"] == []


async def test_open_inference_protocol_gives_predictions_of_tiles_and_refuses_their_tensors(tmp_path):
    folder = tiled(tmp_path)
    service = Service(Settings(model_dir=folder), model_json.load(folder), Engine(folder / "model.onnx"))
    service.start()
    sent = oip.InferRequest(
        "", {}, {"images": [pictures.with_boxes(SQUARES, (112, 64))] * 2}, (), binary=False, parameters={}
    )
    try:
        body, _ = await service.infer(sent, Call(time.monotonic() + 30), lambda: None)
        wrong = replace(sent, outputs=(oip.WantedOutput("scores", binary=False),))
        with pytest.raises(BadRequest, match="ask for 'predictions' alone"):
            await service.infer(wrong, Call(time.monotonic() + 30), lambda: None)
    finally:
        await service.stop()

    assert [len(json.loads(text)) for text in json.loads(body)["outputs"][0]["data"]] == [4, 4]


def test_evaluation_looks_at_tiles_as_the_service_does(tmp_path):
    version = versions.detection(tmp_path / "v")
    untiled = evaluate(a_run(tmp_path / "whole", tiny.detector(tmp_path / "a", 128, 16), version))
    parts = evaluate(a_run(tmp_path / "parts", tiled(tmp_path / "b", 0.5, 16), version))

    assert parts["summary"] == untiled["summary"]
    assert parts["confusion"] == untiled["confusion"]


@pytest.mark.parametrize("task", ["classification", "keypoints"])
def test_tiles_are_refused_where_a_task_knows_none(tmp_path, task):
    description = json.loads((tiled(tmp_path) / "model.json").read_text())
    description |= {"task": task, "output": {n: n for n in ("logits", "points", "classes")}}

    with pytest.raises(model_json.BadModel, match=f"A {task} model cannot look at tiles"):
        model_json.parse(description)


class AtOnce(ThreadPoolExecutor):
    """Runs a call before `submit` returns."""

    def submit(self, work, *args):
        done: Future = Future()
        done.set_result(work(*args))
        return done


def test_evaluator_decodes_no_further_ahead_than_a_few_batches_of_looks(tmp_path, monkeypatch):
    folder = versions.detection(tmp_path / "v", images=20)
    opened: list[str] = []
    ahead: list[int] = []
    plain, predict = decode.open_image, Predictor._predict
    monkeypatch.setattr("inference.kit.prediction.predictor.ThreadPoolExecutor", AtOnce)
    monkeypatch.setattr(decode, "open_image", lambda path, **how: opened.append(path) or plain(path, **how))
    monkeypatch.setattr(Predictor, "_count", lambda self, sample: 9)
    monkeypatch.setattr(Predictor, "_predict", lambda self, ready: ahead.append(len(opened)) or predict(self, ready))

    evaluate(a_run(tmp_path / "run", tiny.detector(tmp_path / "m"), folder, batch=8))

    limit = -(-AHEAD * 8 // 9)  # images of nine looks that wait
    assert ahead == [min(limit + step, 19) for step in range(19)]


def test_joining_thousands_of_tiles_takes_little_memory():
    places = grid(3000, 2250, (64, 64), 0.25)
    rects = np.array([[x, y, x + 64, y + 64] for x, y in places], np.float32)
    of = np.arange(len(places))
    boxes = np.concatenate([rects[:, :2] + 16, rects[:, :2] + 32], 1)

    tracemalloc.start()
    numbers, _ = joining.merged(boxes, np.ones(len(of), np.float32), of % 5, of, rects, (3000, 2250))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(numbers) == len(places) > 2500
    assert peak < 20 << 20
