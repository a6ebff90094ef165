"""A tagger's outputs as classes with their scores, and which of them are taken to be there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from inference.kit.contracts.layouts import per_class
from inference.kit.contracts.schema import CLASS, SHARE, YES, an_object
from inference.kit.contracts.served_task import Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec

PROBABILITIES = "probabilities"  # role of an output that has been through the logistic function in the model


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each image all classes that are predicted as present, best first, and below them the next likeliest.

    `top_k` bounds how many are named in all, but never leaves out one that is there; 0 names every class.
    """
    threshold = spec.decode.score_threshold if requested.score_threshold is None else requested.score_threshold
    answers = []
    for scores in scores_of(spec, outputs):
        named = max(requested.top_k or len(scores), int((scores >= threshold).sum()))
        answers.append(
            [
                {
                    **spec.class_at(index),
                    "score": round(float(scores[index]), 6),
                    "present": bool(scores[index] >= threshold),
                    "threshold": threshold,
                }
                for index in decode.top(scores, named)
            ]
        )
    return answers


def scores_of(spec: ModelSpec, outputs: Arrays) -> decode.Floats:
    """How sure each class is on each picture [N, C], 0..1; a model may answer it itself."""
    if PROBABILITIES in spec.outputs:
        return np.asarray(outputs[spec.outputs[PROBABILITIES]], np.float32)
    logits = np.asarray(outputs[spec.outputs["logits"]], np.float32)
    return np.asarray(0.5 * (1 + np.tanh(logits / 2)), np.float32)  # the logistic function, without an overflow


LAYOUTS = (
    per_class("logits", "Scores before sigmoid (logits)"),
    per_class(PROBABILITIES, "Probabilities", maker="Sigmoid"),
)
ITEM = an_object(**CLASS, score=SHARE, present=YES, threshold=SHARE)
ANSWER = Answer(
    outputs=("logits",),
    read=read,
    item=ITEM,
    options=("score_threshold", "top_k"),
    layouts=LAYOUTS,
    elsewhere=True,
    shares=scores_of,
)
