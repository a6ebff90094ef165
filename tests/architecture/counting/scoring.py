"""Scores counts by their mean difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inference.kit.contracts.served_task import Arrays, Line
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.spec import DecodeSpec, ModelSpec
from inference.kit.samples.ground_truth import Sample, Truth


def lines(
    spec: ModelSpec,
    outputs: Arrays,
    samples: Sequence[tuple[Sample, Placement]],
    mapping: Mapping[int, int],
    limits: DecodeSpec,
) -> list[Line]:
    """Each image's number."""
    rows = np.asarray(outputs[spec.outputs["count"]]).ravel().tolist()
    return [{"path": s.path, "id": s.id, "count": n} for (s, _), n in zip(samples, rows, strict=True)]


def evaluate(truth: Truth, lines: list[Line]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The mean difference, and each image's."""
    samples = {sample.path: sample for sample in truth.samples}
    images = []
    for line in lines:
        sample = samples[line["path"]]
        there, said = len(sample.boxes), line["count"]
        images.append(
            {
                "path": sample.path,
                "width": sample.width,
                "height": sample.height,
                "there": there,
                "said": said,
                "badness": abs(there - said),
                "cells": [],
            }
        )
    images.sort(key=lambda image: -image["badness"])
    return {"summary": {"mae": float(np.mean([image["badness"] for image in images]))}}, images


def files(lines: list[Line]) -> dict[str, str]:
    """A table beside the lines."""
    return {"counts.csv": "".join(f"{line['path']},{line['count']:g}\n" for line in lines)}
