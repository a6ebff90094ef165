"""The "graph" object of a model.json, which describes a model that is composed of other models (its parts).

An ensemble runs all parts on the same image and joins their predictions. A chain runs a detector, then a classifier or
tagger on each detected object. The graph contains the complete model.json of each part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from inference.kit.model_io.spec import (
    CHAIN,
    CLASS_SCORE,
    DETECTED,
    DETECTED_SCORE,
    ENSEMBLE,
    FUSION,
    MEAN,
    SUPPRESSION,
    DecodeSpec,
    Graph,
    InputSpec,
    ModelClass,
    ModelSpec,
    Part,
)
from inference.kit.task_kinds import TASKS

MIN_PARTS, MAX_PARTS = 2, 5  # parts of an ensemble; a chain has exactly 2
FIRST_TASKS = tuple(name for name, task in TASKS.items() if task.answer.boxes)  # tasks of the first part of a chain
SECOND_TASKS = tuple(name for name, task in TASKS.items() if task.answer.shares)  # tasks of its second part
MEAN_TASKS = tuple(name for name, task in TASKS.items() if task.answer.shares or task.answer.maps)
#: task → methods by which an ensemble joins the predictions of models of that task; the default comes first
METHODS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(MEAN_TASKS, (MEAN,)),
    **dict.fromkeys(FIRST_TASKS, (FUSION, SUPPRESSION)),
}
CHAIN_OUTPUTS: tuple[str, ...] = ("boxes", "scores", DETECTED, DETECTED_SCORE, CLASS_SCORE)


class BadGraph(Exception):
    """The graph is invalid; the message names the field and the reason."""


def read(top: Mapping[str, Any], part_of: Callable[[object], ModelSpec]) -> Graph:
    """Parse and check the "graph" of a model.json.

    Args:
        top: the whole model.json.
        part_of: parses the model.json of a part.

    Raises:
        BadGraph: a value is missing or out of range, or the parts do not fit together.
    """
    entry = top["graph"]
    if not isinstance(entry, dict):
        raise BadGraph("graph must be an object.")
    kind, parts = entry.get("kind"), entry.get("parts")
    if kind not in (ENSEMBLE, CHAIN):
        raise BadGraph(f"graph.kind must be {ENSEMBLE} or {CHAIN}, not {kind!r}.")
    max_parts = MAX_PARTS if kind == ENSEMBLE else 2
    if not isinstance(parts, list) or not MIN_PARTS <= len(parts) <= max_parts:
        raise BadGraph(f"graph.parts of an {ENSEMBLE} must be {MIN_PARTS} to {MAX_PARTS}, of a {CHAIN} 2.")
    parsed_parts = tuple(_read_part(value, number, part_of) for number, value in enumerate(parts, 1))
    only = entry.get("only", [])
    if not isinstance(only, list) or not all(isinstance(name, str) for name in only):
        raise BadGraph("graph.only must be a list of class names.")
    graph = Graph(
        kind=kind,
        parts=parsed_parts,
        method=str(entry.get("way", "")),
        iou=_read_number(entry, "iou", 0.55, limit=1),
        margin=_read_number(entry, "margin", 0.0, limit=1),
        min_score=_read_number(entry, "min_score", 0.3, limit=1),
        only=tuple(only),
    )
    _check(graph, str(top.get("task")))
    return graph


def _read_part(value: object, number: int, part_of: Callable[[object], ModelSpec]) -> Part:
    """Parse an entry of graph.parts; `number` counts from 1."""
    name = f"graph.parts[{number - 1}]"
    if not isinstance(value, dict):
        raise BadGraph(f"{name} must be an object.")
    if value.get("file") != f"part{number}.onnx":
        raise BadGraph(f"{name}.file must be part{number}.onnx.")
    content = value.get("model")
    if not isinstance(content, dict) or "graph" in content:
        raise BadGraph(f"{name}.model must be the model.json of a model that is not composed itself.")
    weight = _read_number(value, "weight", 1.0, limit=1000)
    if weight <= 0:
        raise BadGraph(f"{name}.weight must be greater than zero.")
    return Part(str(value["file"]), part_of(content), weight)


def _read_number(entry: Mapping[str, Any], name: str, default: float, *, limit: float) -> float:
    """Return a number from 0 to `limit`."""
    value = entry.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limit:  # NaN fails
        raise BadGraph(f"graph.{name} must be between 0 and {limit}, not {value!r}.")
    return float(value)


def _check(graph: Graph, task: str) -> None:
    """Check that the parts fit together and give a model of this task."""
    specs = [part.spec for part in graph.parts]
    if any(spec.input is None or spec.input.overlap is not None for spec in specs):
        raise BadGraph("The parts of a composed model look at whole pictures, not at tiles.")
    if any(len(names(spec)) != len(spec.classes) for spec in specs):
        raise BadGraph("A part of a composed model has two classes of one name.")
    if task != task_of(graph):
        raise BadGraph(f"These parts make a {task_of(graph)} model, not {task}.")
    if graph.kind == CHAIN:
        if specs[0].task not in FIRST_TASKS or specs[1].task not in SECOND_TASKS:
            raise BadGraph("A chain is a detector and then a classifier or a tagger.")
        if not set(graph.only) <= names(specs[0]):
            raise BadGraph("graph.only names a class that the first part does not have.")
        return
    if graph.method not in METHODS.get(task, ()):
        raise BadGraph(f"graph.way of a {task} ensemble must be one of {', '.join(METHODS.get(task, ('none',)))}.")
    if any((part_spec.task, names(part_spec)) != (task, names(specs[0])) for part_spec in specs):
        raise BadGraph("The parts of an ensemble have one task and the same classes.")
    if len({part_spec.input.scope for part_spec in specs if part_spec.input}) != 1:
        raise BadGraph("The parts of an ensemble all look at pictures, or all at objects.")


def names(spec: ModelSpec) -> set[str]:
    """Return the class names of a model."""
    return {model_class.name for model_class in spec.classes}


def task_of(graph: Graph) -> str:
    """Return the task of the composed model, which is that of its first part."""
    return graph.parts[0].spec.task


def classes_of(graph: Graph) -> tuple[ModelClass, ...]:
    """Return the classes of the composed model.

    Ensemble: those of the first part, because all parts have the same. Chain: those of the second part; if it runs only
    on objects of the classes `only`, the other classes of the first part follow, with new ids.
    """
    if graph.kind == ENSEMBLE:
        return graph.parts[0].spec.classes
    first, second = (part.spec.classes for part in graph.parts)
    second_names = {model_class.name for model_class in second}
    passed_through = [
        model_class.name
        for model_class in first
        if graph.only and model_class.name not in graph.only and model_class.name not in second_names
    ]
    max_id = max(model_class.id for model_class in second)
    return (*second, *(ModelClass(max_id + offset, name) for offset, name in enumerate(passed_through, 1)))


def decode_of(graph: Graph) -> DecodeSpec:
    """Return the decoding defaults of the composed model.

    Chain: no further confidence threshold, because `min_score` was applied to the first part already. Ensemble: the
    weighted mean of the confidence thresholds; with fusion the IoU threshold is that of the fusion, so that fused boxes
    are not suppressed again.
    """
    first = graph.parts[0].spec.decode
    if graph.kind == CHAIN:
        return DecodeSpec(0.0, first.iou_threshold, first.max_detections)
    total_weight = sum(part.weight for part in graph.parts)
    score = sum(part.weight * part.spec.decode.score_threshold for part in graph.parts) / total_weight
    iou_threshold = first.iou_threshold if graph.method == SUPPRESSION else graph.iou
    return replace(first, score_threshold=score, iou_threshold=iou_threshold)


def outputs_of(graph: Graph) -> dict[str, str]:
    """Return {role: tensor name} of the outputs of the composed model; the names equal the roles."""
    answer = TASKS[task_of(graph)].answer
    if graph.kind == CHAIN:
        roles = CHAIN_OUTPUTS
    elif answer.boxes:
        roles = CHAIN_OUTPUTS[:2]
    else:
        roles = (answer.maps or "probabilities",)
    return {role: role for role in roles}


def input_of(graph: Graph) -> InputSpec:
    """Return the input of the composed model: that of its first part, with the inputs of the parts in `parts`.

    For a chain `parts` holds only the first one; `cuts` tells it to cut the input of the second part out of the image.
    """
    inputs = tuple(part.spec.input for part in graph.parts if part.spec.input is not None)
    if graph.kind == CHAIN:
        return replace(inputs[0], parts=inputs[:1], cuts=True)
    return replace(inputs[0], parts=inputs)
