"""Builds the TensorRT engine of a small network as a conversion job does, serves it, and compares its answers.

Arguments: "tensorrt", or "onnxruntime" to do the same on the CPU without an engine; the task of the model.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

from inference.kit.model_io.engine import Engine

SIDE, CLASSES, BATCH, ROUNDS = 96, 10, 32, 20
TARGET = "tensorrt_fp16"


def write_model(folder: Path, runtime: str, task: str) -> None:
    """A convolutional classifier with random weights, as the registry keeps models."""
    draw, weights, nodes, last, channels = np.random.default_rng(0), [], [], "images", 3
    for number, width in enumerate((32, 64, 128)):
        values = draw.normal(0, (2 / (9 * channels)) ** 0.5, (width, channels, 3, 3)).astype(np.float32)
        weights.append(numpy_helper.from_array(values, f"w{number}"))
        nodes.append(helper.make_node("Conv", [last, f"w{number}"], [f"c{number}"], strides=[2, 2], pads=[1, 1, 1, 1]))
        nodes.append(helper.make_node("Relu", [f"c{number}"], [f"r{number}"]))
        last, channels = f"r{number}", width
    head = draw.normal(0, channels**-0.5, (channels, CLASSES)).astype(np.float32)
    weights.append(numpy_helper.from_array(head, "head"))
    nodes += [
        helper.make_node("GlobalAveragePool", [last], ["mean"]),
        helper.make_node("Flatten", ["mean"], ["flat"], axis=1),
        helper.make_node("MatMul", ["flat", "head"], ["logits"]),
    ]
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, ["n", 3, SIDE, SIDE])
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", CLASSES])
    graph = helper.make_graph(nodes, "network", [images], [logits], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    folder.mkdir(parents=True, exist_ok=True)
    save(model, str(folder / "model.onnx"))
    description = {
        "format": 1, "task": task, "architecture": "gpu-report", "preset": "gpu-report", "metrics": {},
        "classes": [{"id": number + 1, "name": str(number)} for number in range(CLASSES)], "params": {},
        "decode": {}, "verify": {"samples": 1, "max_abs_diff": 0.0}, "output": {"logits": "logits"},
        "input": {
            "name": "images", "height": SIDE, "width": SIDE, "channels": 3, "dtype": "float32", "layout": "NCHW",
            "mean": [0, 0, 0], "std": [255, 255, 255], "resize": "stretch",
        },
    }  # fmt: skip
    (folder / "model.json").write_text(
        json.dumps(description | ({"runtime": runtime} if runtime == "tensorrt" else {}))
    )


def rate(engine: Engine, feeds: dict[str, np.ndarray]) -> float:
    engine.run(feeds)
    began = time.perf_counter()
    for _ in range(ROUNDS):
        engine.run(feeds)
    return ROUNDS * BATCH / (time.perf_counter() - began)


def request(port: int, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def served(folder: Path, image: np.ndarray) -> np.ndarray:
    """What the platform's model server answers to one image."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {**os.environ, "AIP_MODEL_DIR": str(folder), "AIP_PORT": str(port), "AIP_HOST": "127.0.0.1"}
    server = subprocess.Popen([sys.executable, "-m", "inference.serving.server"], env=env)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and server.poll() is None:
            try:
                if request(port, "GET", "/v2/health/ready")[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.05)
        tensor = {"name": "images", "shape": list(image.shape), "datatype": "FP32", "data": image.ravel().tolist()}
        status, text = request(port, "POST", "/v2/models/model/infer", {"inputs": [tensor]})
        if status != 200:
            raise SystemExit(f"the server answered {status}: {text[:300]!r}")
        return np.array(json.loads(text)["outputs"][0]["data"], np.float32)
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    runtime, task, folder = sys.argv[1], sys.argv[2], Path("model")
    write_model(folder, runtime, task)
    draw = np.random.default_rng(1)
    feeds = {"images": draw.random((BATCH, 3, SIDE, SIDE), np.float32)}
    plain = Engine(folder / "model.onnx", runtime="")
    expected = plain.run(feeds)["logits"]
    measured: dict[str, object] = {"plain_images_s": rate(plain, feeds)}
    began = time.perf_counter()
    if runtime == "tensorrt":
        from inference.conversion.converter import engines
        from inference.conversion.converter.build import Bench

        work = Path("work")
        work.mkdir()
        bench = Bench(folder / "model.onnx", work, lambda: iter([{"images": feeds["images"][:1]}]))
        measured["layers"] = engines.build_engine(TARGET, bench, folder)["engine"]["layers"]
    measured["build_s"] = time.perf_counter() - began
    engine = Engine(folder / "model.onnx", strictly=runtime == "tensorrt")
    measured |= {"provider": engine.provider, "images_s": rate(engine, feeds)}
    measured["difference"] = float(np.abs(np.subtract(engine.run(feeds)["logits"], expected)).max())
    answer = served(folder, feeds["images"][:1])
    measured["served_difference"] = float(np.abs(np.subtract(answer, expected[0])).max())
    print("result", json.dumps(measured), flush=True)


main()
