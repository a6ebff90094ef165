"""model.json: the file next to a model that describes its input and the meaning of its outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

from inference.kit.model_io.spec import BGR, RGB, TENSOR, DecodeSpec, InputSpec, ModelClass, ModelSpec
from inference.kit.models import graph_json
from inference.kit.task_kinds import TASKS

MAX_BYTES = 8 << 20
MAX_SIDE = 8192
MAX_CLASSES = 100_000
MAX_IOU = 0.9


class BadModel(Exception):
    """The model's description is missing, broken or contradicts itself; says which."""


def load(directory: Path) -> ModelSpec:
    """Read `model.json` next to `model.onnx`; without the file the model accepts tensors only.

    Raises:
        BadModel: the file is there but not usable.
    """
    path = directory / "model.json"
    if not path.exists():
        return ModelSpec(task=TENSOR)
    if path.stat().st_size > MAX_BYTES:
        raise BadModel(f"model.json has more than {MAX_BYTES >> 20} MiB.")
    try:
        data = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as exc:
        raise BadModel(f"model.json is not JSON: {exc}") from exc
    return parse(data)


def parse(data: object) -> ModelSpec:
    """Check the content of a model.json.

    Raises:
        BadModel: a field is missing or out of range; the message names it.
    """
    top = _object(data, "model.json")
    if top.get("format") != 1:
        raise BadModel(f"model.json has format {top.get('format')!r}; this platform reads format 1.")
    task = top.get("task")
    if not isinstance(task, str) or task not in TASKS:
        names = " and ".join(", ".join(TASKS).rsplit(", ", 1))
        raise BadModel(f"model.json names the task {task!r}; known are {names}.")
    if "graph" in top:
        return _composed(top)
    output = _object(top.get("output"), "output")
    roles = TASKS[task].answer.roles(output)
    tile = _object(top.get("input"), "input").get("tile")
    if tile is not None and roles != TASKS[task].answer.outputs:
        raise BadModel("Only models with the outputs of our own presets look at tiles; leave out input.tile.")
    return ModelSpec(
        task=task,
        architecture=str(top.get("architecture", "")),
        preset=str(top.get("preset", "")),
        classes=_classes(top.get("classes")),
        input=_input(_object(top.get("input"), "input"), task),
        outputs={role: _text(output.get(role), f"output.{role}") for role in roles},
        decode=_decode(_object(top.get("decode", {}), "decode")),
        raw=top,
    )


def _composed(top: Mapping[str, Any]) -> ModelSpec:
    """A model made of others: all but its graph follows from its parts."""
    try:
        graph = graph_json.read(top, parse)
    except graph_json.BadGraph as exc:
        raise BadModel(str(exc)) from None
    return ModelSpec(
        task=graph_json.task_of(graph),
        architecture=str(top.get("architecture", "")),
        classes=graph_json.classes_of(graph),
        input=graph_json.input_of(graph),
        outputs=graph_json.outputs_of(graph),
        decode=graph_json.decode_of(graph),
        graph=graph,
        raw=top,
    )


def _classes(value: object) -> tuple[ModelClass, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_CLASSES:
        raise BadModel("classes must be a list of at least one {id, name}.")
    classes = []
    for index, item in enumerate(value):
        entry = _object(item, f"classes[{index}]")
        if not isinstance(entry.get("id"), int):
            raise BadModel(f"classes[{index}].id must be a whole number.")
        classes.append(ModelClass(entry["id"], _text(entry.get("name"), f"classes[{index}].name")))
    if len({c.id for c in classes}) != len(classes):
        raise BadModel("Two classes share one id.")
    return tuple(classes)


def _input(entry: Mapping[str, Any], task: str) -> InputSpec:
    width, height = (entry.get(side) for side in ("width", "height"))
    for name, side in (("width", width), ("height", height)):
        if not isinstance(side, int) or not 1 <= side <= MAX_SIDE:
            raise BadModel(f"input.{name} must be 1..{MAX_SIDE} pixels, not {side!r}.")
    channels = entry.get("channels", 3)
    if channels not in (1, 3):
        raise BadModel(f"input.channels must be 1 or 3, not {channels!r}.")
    if entry.get("dtype", "float32") != "float32" or entry.get("layout", "NCHW") != "NCHW":
        raise BadModel("input must be float32 in NCHW layout.")
    order = entry.get("order", RGB)
    if order not in (RGB, BGR) or (order == BGR and channels == 1):
        raise BadModel(f"input.order must be {RGB}, or {BGR} of three channels, not {order!r}.")
    resize = entry.get("resize", "stretch")
    if resize not in ("stretch", "letterbox"):
        raise BadModel(f"input.resize must be stretch or letterbox, not {resize!r}.")
    scope = entry.get("scope", "picture")
    if scope not in ("picture", "object"):
        raise BadModel(f"input.scope must be picture or object, not {scope!r}.")
    margin = entry.get("margin", 0.0)
    if not isinstance(margin, int | float) or not 0 <= margin <= 1:
        raise BadModel(f"input.margin must be between 0 and 1, not {margin!r}.")
    tile = entry.get("tile")
    overlap = None if tile is None else _object(tile, "input.tile").get("overlap")
    if tile is not None and (not isinstance(overlap, int | float) or not 0 <= overlap <= MAX_IOU):
        raise BadModel(f"input.tile.overlap must be between 0 and {MAX_IOU}, not {overlap!r}.")
    if tile is not None and (TASKS[task].answer.joining is None or scope == "object"):
        raise BadModel(f"A {task} model cannot look at tiles; leave out input.tile.")
    std = _floats(entry.get("std"), channels, "input.std")
    if any(s <= 0 for s in std):
        raise BadModel("input.std must be greater than zero.")
    return InputSpec(
        name=_text(entry.get("name", "images"), "input.name"),
        width=cast(int, width),
        height=cast(int, height),
        channels=channels,
        mean=_floats(entry.get("mean"), channels, "input.mean"),
        std=std,
        resize=cast(Literal["stretch", "letterbox"], resize),
        scope=cast(Literal["picture", "object"], scope),
        margin=float(margin),
        overlap=None if overlap is None else float(overlap),
        blue_first=order == BGR,
    )


def _decode(entry: Mapping[str, Any]) -> DecodeSpec:
    default = DecodeSpec()
    score = entry.get("score_threshold", default.score_threshold)
    iou = entry.get("iou_threshold", default.iou_threshold)
    max_detections = entry.get("max_detections", default.max_detections)
    for name, value in (("score_threshold", score), ("iou_threshold", iou)):
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            raise BadModel(f"decode.{name} must be between 0 and 1, not {value!r}.")
    if not isinstance(max_detections, int) or not 1 <= max_detections <= 10_000:
        raise BadModel(f"decode.max_detections must be 1..10000, not {max_detections!r}.")
    return DecodeSpec(float(score), float(iou), max_detections)


def _floats(value: object, count: int, name: str) -> tuple[float, ...]:
    if not isinstance(value, list) or len(value) != count:
        raise BadModel(f"{name} must be a list of {count} numbers.")
    if not all(isinstance(v, int | float) and abs(v) < 1e6 for v in value):
        raise BadModel(f"{name} must hold finite numbers.")
    return tuple(float(v) for v in value)


def _object(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise BadModel(f"{name} must be an object.")
    return value


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= 200:
        raise BadModel(f"{name} must be a text of 1..200 characters.")
    return value
