"""What only a card can prove of TensorRT: an engine is built, opened, and answers as ONNX Runtime does.

`pytest -m gpu` on a machine with an NVIDIA GPU and TensorRT; skipped with a word elsewhere.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from inference.conversion.converter import engines
from inference.conversion.converter.build import Bench
from inference.kit.model_io import tensorrt
from inference.kit.model_io.engine import Engine
from tests.inference import tiny

pytestmark = pytest.mark.gpu


@pytest.fixture
def granted(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    try:
        tensorrt.require()
    except tensorrt.NotUsable as why:
        pytest.skip(str(why))


@pytest.mark.parametrize(("target", "apart"), [("tensorrt", 1e-2), ("tensorrt_fp16", 5e-2)])  # FP32 computes in TF32
def test_engine_answers_as_onnx_runtime_does(granted, tmp_path, target, apart):
    folder = tiny.detector(tmp_path / "net")
    about = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(about | {"runtime": "tensorrt"}))
    plain = Engine(folder / "model.onnx", runtime="")
    (end,) = plain.inputs
    size = [64 if side < 0 else side for side in end.shape[1:]]
    bench = Bench(folder / "model.onnx", tmp_path, lambda: iter([{end.name: np.zeros((1, *size), np.float32)}]))

    row = engines.build_engine(target, bench, folder)

    engine = Engine(folder / "model.onnx", strictly=True)
    assert (engine.provider, engine.outputs, row["engine"]["layers"] > 0) == ("TensorRT", plain.outputs, True)
    feeds = {end.name: np.random.default_rng(0).random((40, *size), np.float32)}  # more than go through it at once
    given = engine.run(feeds)
    for name, values in plain.run(feeds).items():
        np.testing.assert_allclose(given[name], values, rtol=apart, atol=apart)
