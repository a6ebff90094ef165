"""Build TensorRT engines of a model for the card of this job, and say of which layers they are made.

Networks are strongly typed, the only kind that TensorRT has from 11 on: FP16 is in the graph that it is given, which
holds for 10 as well.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from inference.conversion.converter import variant_catalog
from inference.conversion.converter.build import Bench, NotBuilt, convert_to_half, quiet
from inference.kit.model_io import tensorrt

USUAL_BATCH, MAX_BATCH_SIZE = 8, 32  # larger ones go through the engine in turns
WORKSPACE = 2 << 30  # bytes of the card that layers may use while they compute
LOOKED_AT = 16  # inputs whose sizes determine the sizes that an engine is built for
MAX_LAYERS, LONGEST = 300, 120
PRECISION = re.compile(r"BF16|FP8|FP4|FP16|FP32|INT4|INT8|INT32|INT64|BOOL|HALF|FLOAT|UINT8", re.IGNORECASE)
SAME = {"HALF": "FP16", "FLOAT": "FP32"}
TYPED = ("DataType", "Datatype", "Format/Datatype", "Format")  # as versions of TensorRT call it


def build_engine(name: str, bench: Bench, folder: Path) -> dict[str, Any]:
    """Build the engine of a variant next to its model.onnx; returns the fields of its row.

    Raises:
        NotBuilt: TensorRT cannot build it, or not run what it built.
        NotUsable: there is no card or no wheel.
    """
    trt, card = tensorrt.module(), tensorrt.card()
    source = bench.source
    file = folder / tensorrt.engine_name(trt, card)
    try:
        if variant_catalog.TARGETS[name].half:
            source = bench.work / "half.onnx"
            with quiet():
                convert_to_half(bench, source)
        data = _built(trt, source.read_bytes(), bench)
    except (MemoryError, NotBuilt):
        raise
    except Exception as exc:  # the tools raise whatever they happen to meet
        raise NotBuilt(f"{type(exc).__name__}: {exc}"[:300]) from exc
    temporary = file.with_name(file.name + ".tmp")
    temporary.write_bytes(data)
    temporary.rename(file)
    try:
        session = tensorrt.Session(folder / "model.onnx")  # kept alive while its engine is inspected
        listed = layers(trt, session.engine)
    except tensorrt.NotUsable as exc:
        raise NotBuilt(str(exc)) from exc
    return {
        "engine": {
            "file": file.name,
            "card": card.name[:100],
            "capability": f"{card.capability[0]}.{card.capability[1]}",
            "tensorrt": str(trt.__version__)[:30],
            "layers": len(listed),
        },
        "layers": listed[:MAX_LAYERS],
    }


def fits(folder: Path) -> bool:
    """Whether the engine in the folder of a variant runs here: an earlier attempt may have had another card."""
    try:
        return (folder / tensorrt.engine_name(tensorrt.module(), tensorrt.card())).is_file()
    except tensorrt.NotUsable:
        return False


def layers(trt: Any, engine: Any) -> list[dict[str, str]]:
    """Return name, kind and precision of each layer of an engine, as its inspector reports them."""
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    try:
        entries = json.loads(text).get("Layers", [])
    except (ValueError, AttributeError):
        return []
    return [_layer(entry) for entry in entries] if isinstance(entries, list) else []


def _layer(entry: Any) -> dict[str, str]:
    if not isinstance(entry, dict):  # without details it reports names only
        return {"name": str(entry)[:LONGEST], "kind": "", "precision": ""}
    kind = str(entry.get("LayerType") or entry.get("ParameterType") or "")
    return {"name": str(entry.get("Name", ""))[:LONGEST], "kind": kind[:40], "precision": _precision(entry)}


def _precision(entry: Mapping[str, Any]) -> str:
    """Return the type of a layer's output: FP32, FP16, INT8…; "" if it is not reported."""
    for end in entry.get("Outputs") or entry.get("Inputs") or ():
        word = next((str(end[key]) for key in TYPED if end.get(key)), "") if isinstance(end, dict) else ""
        if match := PRECISION.search(word):
            return SAME.get(match[0].upper(), match[0].upper())
    return ""


def _built(trt: Any, model: bytes, bench: Bench) -> bytes:
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(model):
        reasons = "; ".join(parser.get_error(index).desc() for index in range(min(parser.num_errors, 3)))
        raise NotBuilt(f"TensorRT does not read this model: {reasons}"[:300])
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, WORKSPACE)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # otherwise the inspector reports names only
    if (sizes := _sizes(network, bench)) is not None:
        profile = builder.create_optimization_profile()
        for name, (least, usual, largest) in sizes.items():
            profile.set_shape(name, least, usual, largest)
        config.add_optimization_profile(profile)
    timings = bench.work / "timings.cache"  # what kernels took, for the next variant
    cache = config.create_timing_cache(timings.read_bytes() if timings.exists() else b"")
    config.set_timing_cache(cache, False)
    data = builder.build_serialized_network(network, config)
    if data is None:
        raise NotBuilt("TensorRT cannot build an engine of this model on this card; the log says why.")
    with contextlib.suppress(OSError):
        timings.write_bytes(bytes(config.get_timing_cache().serialize()))
    return bytes(data)


def _sizes(network: Any, bench: Bench) -> dict[str, tuple[tuple[int, ...], ...]] | None:
    """Return the least, usual and largest sizes of inputs that have free ones; None if none has.

    Samples may come in any number up to MAX_BATCH_SIZE; other free sizes are as some inputs of the data have them.
    """
    inputs = [network.get_input(index) for index in range(network.num_inputs)]
    free = {tensor.name: tuple(tensor.shape) for tensor in inputs if -1 in tuple(tensor.shape)}
    if not free:
        return None
    observed = [{name: feed[name].shape for name in free} for feed in islice(bench.samples(), LOOKED_AT)]
    if not observed:
        raise NotBuilt("No picture could be read, so nothing tells the sizes of its inputs.")
    return {name: _span(shape, [sizes[name] for sizes in observed]) for name, shape in free.items()}


def _span(shape: tuple[int, ...], observed: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    low, high = list(shape), list(shape)
    for axis, size in enumerate(shape):
        if size == -1:
            axis_sizes = [sizes[axis] for sizes in observed]
            low[axis], high[axis] = (1, MAX_BATCH_SIZE) if axis == 0 else (min(axis_sizes), max(axis_sizes))
    usual = list(high)
    if shape[0] == -1:
        usual[0] = USUAL_BATCH
    return tuple(low), tuple(usual), tuple(high)
