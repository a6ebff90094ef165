"""The "graph" of a model.json: a model composed of others, as data. It contains the descriptions of its parts."""

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

FEWEST, MOST = 2, 5  # parts of an ensemble
FIRSTS = tuple(name for name, task in TASKS.items() if task.answer.boxes)  # tasks of what finds objects
SECONDS = tuple(name for name, task in TASKS.items() if task.answer.shares)  # and of what looks at them
MEANS = tuple(name for name, task in TASKS.items() if task.answer.shares or task.answer.maps)
#: task → how the answers of models of that task can be joined, the usual way first
METHODS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(MEANS, (MEAN,)),
    **dict.fromkeys(FIRSTS, (FUSION, SUPPRESSION)),
}
OF_CHAIN: tuple[str, ...] = ("boxes", "scores", DETECTED, DETECTED_SCORE, CLASS_SCORE)


class BadGraph(Exception):
    """The graph is broken or contradicts itself; says how."""


def read(top: Mapping[str, Any], part_of: Callable[[object], ModelSpec]) -> Graph:
    """Check the "graph" of a model.json.

    Raises:
        BadGraph: something is missing, out of range, or does not fit together.
    """
    entry = top["graph"]
    if not isinstance(entry, dict):
        raise BadGraph("graph must be an object.")
    kind, parts = entry.get("kind"), entry.get("parts")
    if kind not in (ENSEMBLE, CHAIN):
        raise BadGraph(f"graph.kind must be {ENSEMBLE} or {CHAIN}, not {kind!r}.")
    limit = MOST if kind == ENSEMBLE else 2
    if not isinstance(parts, list) or not FEWEST <= len(parts) <= limit:
        raise BadGraph(f"graph.parts of an {ENSEMBLE} must be {FEWEST} to {MOST}, of a {CHAIN} 2.")
    read_parts = tuple(_part(value, number, part_of) for number, value in enumerate(parts, 1))
    only = entry.get("only", [])
    if not isinstance(only, list) or not all(isinstance(name, str) for name in only):
        raise BadGraph("graph.only must be a list of class names.")
    graph = Graph(
        kind=kind,
        parts=read_parts,
        method=str(entry.get("way", "")),
        iou=_number(entry, "iou", 0.55, limit=1),
        margin=_number(entry, "margin", 0.0, limit=1),
        min_score=_number(entry, "min_score", 0.3, limit=1),
        only=tuple(only),
    )
    _check(graph, str(top.get("task")))
    return graph


def _part(value: object, number: int, part_of: Callable[[object], ModelSpec]) -> Part:
    name = f"graph.parts[{number - 1}]"
    if not isinstance(value, dict):
        raise BadGraph(f"{name} must be an object.")
    if value.get("file") != f"part{number}.onnx":
        raise BadGraph(f"{name}.file must be part{number}.onnx.")
    content = value.get("model")
    if not isinstance(content, dict) or "graph" in content:
        raise BadGraph(f"{name}.model must be the model.json of a model that is not composed itself.")
    weight = _number(value, "weight", 1.0, limit=1000)
    if weight <= 0:
        raise BadGraph(f"{name}.weight must be greater than zero.")
    return Part(str(value["file"]), part_of(content), weight)


def _number(entry: Mapping[str, Any], name: str, default: float, *, limit: float) -> float:
    value = entry.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= limit:  # NaN is not
        raise BadGraph(f"graph.{name} must be between 0 and {limit}, not {value!r}.")
    return float(value)


def _check(graph: Graph, task: str) -> None:
    """Check what the parts must have in common."""
    specs = [part.spec for part in graph.parts]
    if any(spec.input is None or spec.input.overlap is not None for spec in specs):
        raise BadGraph("The parts of a composed model look at whole pictures, not at tiles.")
    if any(len(names(spec)) != len(spec.classes) for spec in specs):
        raise BadGraph("A part of a composed model has two classes of one name.")
    if task != task_of(graph):
        raise BadGraph(f"These parts make a {task_of(graph)} model, not {task}.")
    if graph.kind == CHAIN:
        if specs[0].task not in FIRSTS or specs[1].task not in SECONDS:
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
    """Names of the classes of a model."""
    return {model_class.name for model_class in spec.classes}


def task_of(graph: Graph) -> str:
    """What the composed model is for."""
    return graph.parts[0].spec.task


def classes_of(graph: Graph) -> tuple[ModelClass, ...]:
    """Return the classes of the composed model: of an ensemble those of its first part, of a chain those of its second.

    Of a chain whose second part looks at some classes only, the others are answered as well, after them.
    """
    if graph.kind == ENSEMBLE:
        return graph.parts[0].spec.classes
    first, second = (part.spec.classes for part in graph.parts)
    second_names = {model_class.name for model_class in second}
    left = [
        model_class.name
        for model_class in first
        if graph.only and model_class.name not in graph.only and model_class.name not in second_names
    ]
    highest = max(model_class.id for model_class in second)
    return (*second, *(ModelClass(highest + offset, name) for offset, name in enumerate(left, 1)))


def decode_of(graph: Graph) -> DecodeSpec:
    """Return the decoding defaults: joined boxes are not suppressed again, thresholds are the mean of the parts."""
    first = graph.parts[0].spec.decode
    if graph.kind == CHAIN:  # what its first part left out is out, and nothing else
        return DecodeSpec(0.0, first.iou_threshold, first.max_detections)
    total = sum(part.weight for part in graph.parts)
    score = sum(part.weight * part.spec.decode.score_threshold for part in graph.parts) / total
    suppressed = first.iou_threshold if graph.method == SUPPRESSION else graph.iou
    return replace(first, score_threshold=score, iou_threshold=suppressed)


def outputs_of(graph: Graph) -> dict[str, str]:
    """Role → name of each output of the composed model."""
    answer = TASKS[task_of(graph)].answer
    if graph.kind == CHAIN:
        roles = OF_CHAIN
    elif answer.boxes:
        roles = OF_CHAIN[:2]
    else:
        roles = (answer.maps or "probabilities",)
    return {role: role for role in roles}


def input_of(graph: Graph) -> InputSpec:
    """What is made of a picture for the composed model: what its parts get."""
    inputs = tuple(part.spec.input for part in graph.parts if part.spec.input is not None)
    if graph.kind == CHAIN:
        return replace(inputs[0], parts=inputs[:1], cuts=True)
    return replace(inputs[0], parts=inputs)
