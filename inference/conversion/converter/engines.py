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
from inference.conversion.converter.build import Bench, NotBuilt, halved, quiet
from inference.kit.model_io import tensorrt

USUAL_BATCH, MOST_BATCH = 8, 32  # larger ones go through the engine in turns
WORKSPACE = 2 << 30  # bytes of the card that layers may use while they compute
LOOKED_AT = 16  # inputs whose sizes tell what an engine of free sizes is built for
MOST_LAYERS, LONGEST = 300, 120
PRECISION = re.compile(r"BF16|FP8|FP4|FP16|FP32|INT4|INT8|INT32|INT64|BOOL|HALF|FLOAT|UINT8", re.IGNORECASE)
SAME = {"HALF": "FP16", "FLOAT": "FP32"}
TYPED = ("DataType", "Datatype", "Format/Datatype", "Format")  # as versions of TensorRT call it


def made(name: str, bench: Bench, folder: Path) -> dict[str, Any]:
    """Build the engine of a variant beside its model.onnx; gives what its row says of it.

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
                halved(bench, source)
        data = _built(trt, source.read_bytes(), bench)
    except (MemoryError, NotBuilt):
        raise
    except Exception as exc:  # the tools raise whatever they happen to meet
        raise NotBuilt(f"{type(exc).__name__}: {exc}"[:300]) from exc
    making = file.with_name(file.name + ".tmp")
    making.write_bytes(data)
    making.rename(file)
    try:
        session = tensorrt.Session(folder / "model.onnx")  # held while its engine is asked
        found = layers(trt, session.engine)
    except tensorrt.NotUsable as exc:
        raise NotBuilt(str(exc)) from exc
    return {
        "engine": {
            "file": file.name,
            "card": card.name[:100],
            "capability": f"{card.capability[0]}.{card.capability[1]}",
            "tensorrt": str(trt.__version__)[:30],
            "layers": len(found),
        },
        "layers": found[:MOST_LAYERS],
    }


def fits(folder: Path) -> bool:
    """Whether the engine in the folder of a variant runs here: an earlier attempt may have had another card."""
    try:
        return (folder / tensorrt.engine_name(tensorrt.module(), tensorrt.card())).is_file()
    except tensorrt.NotUsable:
        return False


def layers(trt: Any, engine: Any) -> list[dict[str, str]]:
    """Name, kind and precision of each layer of an engine, as its inspector tells."""
    text = engine.create_engine_inspector().get_engine_information(trt.LayerInformationFormat.JSON)
    try:
        said = json.loads(text).get("Layers", [])
    except (ValueError, AttributeError):
        return []
    return [_layer(one) for one in said] if isinstance(said, list) else []


def _layer(said: Any) -> dict[str, str]:
    if not isinstance(said, dict):  # without detail it tells names alone
        return {"name": str(said)[:LONGEST], "kind": "", "precision": ""}
    kind = str(said.get("LayerType") or said.get("ParameterType") or "")
    return {"name": str(said.get("Name", ""))[:LONGEST], "kind": kind[:40], "precision": _precision(said)}


def _precision(said: Mapping[str, Any]) -> str:
    """The type of what a layer gives: FP32, FP16, INT8…; "" where nothing tells."""
    for end in said.get("Outputs") or said.get("Inputs") or ():
        word = next((str(end[key]) for key in TYPED if end.get(key)), "") if isinstance(end, dict) else ""
        if found := PRECISION.search(word):
            return SAME.get(found[0].upper(), found[0].upper())
    return ""


def _built(trt: Any, model: bytes, bench: Bench) -> bytes:
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED))
    parser = trt.OnnxParser(network, logger)
    if not parser.parse(model):
        said = "; ".join(parser.get_error(place).desc() for place in range(min(parser.num_errors, 3)))
        raise NotBuilt(f"TensorRT does not read this model: {said}"[:300])
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, WORKSPACE)
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED  # or the inspector tells names alone
    if (sizes := _sizes(network, bench)) is not None:
        profile = builder.create_optimization_profile()
        for name, (least, usual, most) in sizes.items():
            profile.set_shape(name, least, usual, most)
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
    """The least, usual and largest sizes of inputs that have free ones; None where none has.

    Samples may come in any number up to MOST_BATCH; other free sizes are as some inputs of the data have them.
    """
    inputs = [network.get_input(place) for place in range(network.num_inputs)]
    free = {one.name: tuple(one.shape) for one in inputs if -1 in tuple(one.shape)}
    if not free:
        return None
    seen = [{name: feed[name].shape for name in free} for feed in islice(bench.samples(), LOOKED_AT)]
    if not seen:
        raise NotBuilt("No picture could be read, so nothing tells the sizes of its inputs.")
    return {name: _span(shape, [sizes[name] for sizes in seen]) for name, shape in free.items()}


def _span(shape: tuple[int, ...], seen: list[tuple[int, ...]]) -> tuple[tuple[int, ...], ...]:
    low, high = list(shape), list(shape)
    for place, size in enumerate(shape):
        if size == -1:
            met = [sizes[place] for sizes in seen]
            low[place], high[place] = (1, MOST_BATCH) if place == 0 else (min(met), max(met))
    usual = list(high)
    if shape[0] == -1:
        usual[0] = USUAL_BATCH
    return tuple(low), tuple(usual), tuple(high)
