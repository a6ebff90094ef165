"""An embedder's outputs as a vector, the nearest known images, and the class that they name.

The known images are inside the model: it answers the cosine with each of them. model.json says which they are
(`gallery`: places of their classes, and the first signs of their checksums in the dataset the model learned from).
Whoever may see the dataset finds the image by them; whoever may only ask the model learns no names of files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.kit.contracts.schema import CLASS, NUMBER, SHARE, TEXT, a_list, an_object
from inference.kit.contracts.served_task import CLASSES, Answer, Arrays
from inference.kit.model_io import decode
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec

VOTES = 10  # of the nearest known images, when a class is named


@dataclass(frozen=True)
class Named:
    """What the nearest known images say: the place of the class, its share of the votes, and which images they are."""

    kind: int
    share: float
    nearest: NDArray[np.int64]  # places among the known images, nearest first


def gallery(spec: ModelSpec, count: int) -> tuple[list[int], list[str]]:
    """Return classes and ids of the reference images; models that still name paths have their numbers, from 1, instead.

    Raises:
        ValueError: model.json names others than the model's `count`, or classes that it does not have.
    """
    described = spec.raw.get("gallery")
    classes = described.get("classes") if isinstance(described, Mapping) else None
    images = described.get("images", described.get("paths")) if isinstance(described, Mapping) else None
    if not (isinstance(classes, list) and isinstance(images, list) and len(classes) == len(images) == count):
        raise ValueError(f"the gallery in model.json does not describe the {count} known images of the model")
    if not all(isinstance(index, int) and 0 <= index < len(spec.classes) for index in classes):
        raise ValueError("the gallery in model.json names classes that the model does not have")
    named_by_path = isinstance(described, Mapping) and "images" not in described
    return classes, [str(index if named_by_path else image) for index, image in enumerate(images, 1)]


def named(cosines: NDArray[np.float32], classes: NDArray[np.int64], *, count: int) -> Named:
    """Return the class of most weight among the nearest reference images; nearer ones weigh more.

    Args:
        cosines, classes: with each known image [M], and its class [M].
        count: of the nearest to be returned.
    """
    limit = min(max(count, VOTES), len(cosines))
    nearest = np.argpartition(-cosines, limit - 1)[:limit]
    nearest = nearest[np.argsort(-cosines[nearest], kind="stable")]
    voting = nearest[:VOTES]
    votes = np.bincount(classes[voting], weights=cosines[voting].clip(min=0).astype(np.float64))
    kind = int(votes.argmax())
    return Named(kind, float(votes[kind] / votes.sum()) if votes.sum() > 0 else 0.0, nearest[:count])


def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[decode.Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """For each image the class named by its neighbours, its vector, and the nearest reference images."""
    similarity = np.asarray(outputs[spec.outputs["similarity"]], np.float32)
    vectors = np.asarray(outputs[spec.outputs["vector"]], np.float32)
    classes, images = gallery(spec, similarity.shape[1])
    of_known = np.array(classes)
    answers = []
    for cosines, vector in zip(similarity, vectors, strict=True):
        result = named(cosines, of_known, count=requested.neighbours)
        neighbours = [
            {**spec.class_at(classes[index]), "image": images[index], "similarity": round(float(cosines[index]), 6)}
            for index in result.nearest
        ]
        prediction = {**spec.class_at(result.kind), "score": round(result.share, 6), "neighbours": neighbours}
        answers.append([{**prediction, "vector": [round(float(value), 6) for value in vector]}])
    return answers


ITEM = an_object(
    **CLASS,
    score=SHARE,
    neighbours=a_list(an_object(**CLASS, image=TEXT, similarity=NUMBER)),
    vector=a_list(NUMBER),
)
ANSWER = Answer(
    outputs=("vector", "similarity"), read=read, item=ITEM, draft=CLASSES, best_only=True, options=("neighbours",)
)
