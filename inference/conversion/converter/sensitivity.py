"""Which nodes of a model suffer most from being quantized: each alone, and how far the outputs move."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

from inference.conversion.converter.build import Bench, Feeds
from inference.kit.model_io.engine import Engine

MAX_NODES, LONGEST_S = 400, 180.0
SAMPLE_IMAGES = 4  # pictures that each is tried on


def rank_nodes(
    bench: Bench, *, threads: int, on_node: Callable[[int, int], None] = lambda _done, _total: None
) -> list[tuple[str, float]]:
    """Return the names of nodes with how much the outputs change when only that node is quantized, the worst first.

    How far is the mean over the outputs of the root mean square of the differences by that of the numbers. What takes
    longer than LONGEST_S is left out; nodes in the order of the graph's end to its beginning, where losses mostly are.
    `on_node` is given how many were tried, of how many.
    """
    graph, kinds = onnx.load(bench.prepared).graph, {*QDQRegistry, *QLinearOpsRegistry}
    nodes = [node.name for node in graph.node if node.name and node.op_type in kinds]
    feeds = list(islice(bench.samples(), SAMPLE_IMAGES))
    engine = Engine(bench.prepared, threads=threads)
    expected = [engine.run(feed) for feed in feeds]
    began, changes = time.monotonic(), []
    for done, name in enumerate(nodes[::-1][:MAX_NODES]):
        on_node(done, min(len(nodes), MAX_NODES))
        if time.monotonic() - began > LONGEST_S:
            break
        made = bench.work / "one.onnx"
        with contextlib.suppress(Exception):  # alone it cannot be quantized, or not run: it is no candidate
            bench.quantize(made, only=[name])
            changes.append((name, _output_change(made, feeds, expected, threads)))
    return sorted(changes, key=lambda pair: -pair[1])


def _output_change(made: Path, feeds: list[Feeds], expected: list[Feeds], threads: int) -> float:
    engine = Engine(made, threads=threads)
    shares = []
    for feed, wanted in zip(feeds, expected, strict=True):
        outputs = engine.run(feed)
        for name, values in wanted.items():
            if values.size and np.issubdtype(values.dtype, np.floating):
                error = np.square(np.asarray(values, np.float64) - np.asarray(outputs[name], np.float64)).mean()
                shares.append(float(np.sqrt(error / max(float(np.square(values, dtype=np.float64).mean()), 1e-12))))
    return float(np.mean(shares)) if shares else 0.0
