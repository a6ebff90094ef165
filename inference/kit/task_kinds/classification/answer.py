"""A classifier's outputs as classes with their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.kit.contracts.layouts import per_class
from inference.kit.contracts.schema import CLASS, SHARE, an_object
from inference.kit.contracts.served_task import CLASSES, Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec

PROBABILITIES = "probabilities"  # role of an output that has been through the softmax in the model


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each image its most probable classes, best first."""
    answers = []
    for scores in probabilities(spec, outputs):
        best = decode.top(scores, requested.top_k or len(scores))
        answers.append([{**spec.class_at(index), "score": round(float(scores[index]), 6)} for index in best])
    return answers


def probabilities(spec: ModelSpec, outputs: Arrays) -> decode.Floats:
    """How likely each class is on each picture [N, C]; a model either answers them or what they are made of."""
    if PROBABILITIES in spec.outputs:
        return np.asarray(outputs[spec.outputs[PROBABILITIES]], np.float32)
    return decode.probabilities(np.asarray(outputs[spec.outputs["logits"]], np.float32))


LAYOUTS = (
    per_class("logits", "Scores before softmax (logits)"),
    per_class(PROBABILITIES, "Probabilities", maker="Softmax"),
)
ITEM = an_object(**CLASS, score=SHARE)
ANSWER = Answer(
    outputs=("logits",),
    read=read,
    item=ITEM,
    draft=CLASSES,
    best_only=True,
    options=("top_k",),
    layouts=LAYOUTS,
    shares=probabilities,
    elsewhere=True,
)
