"""A classifier's outputs as classes with their probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from inference.server import decode
from inference.server.requested import Requested
from inference.server.spec import ModelSpec
from inference.task_kinds.served import Answer, Arrays


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each picture its most probable classes, best first."""
    answers = []
    for logits in cast(Iterable[decode.Floats], outputs[spec.outputs["logits"]]):
        scores = decode.probabilities(logits)
        best = decode.top(scores, requested.top_k or len(scores))
        answers.append([{**spec.class_at(place), "score": round(float(scores[place]), 6)} for place in best])
    return answers


ANSWER = Answer(outputs=("logits",), read=read)
