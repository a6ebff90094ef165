"""A task that is not there: a model that says how many objects an image shows. All that a new task brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from datasets.formats.neutral import SHAPES
from inference.kit.contracts.served_task import Answer, Arrays, Figure, Pages, ServedTask
from inference.kit.model_io.decode import Placement
from inference.kit.model_io.requested import Requested
from inference.kit.model_io.spec import ModelSpec
from training.catalog.task_kinds.task import Task
from training.presets.preset import Preset, common

# training/catalog/task_kinds/counting.py
TASK = Task(
    name="counting",
    label="Counting",
    icon="gauge",
    data=(SHAPES,),
    refusal="%(preset)s counts boxes; %(version)s has: %(labels)s.",
    preset="count",
)

# training/presets/count_card.py
CARD = Preset(
    name="count",
    task="counting",
    title="Object counter",
    purpose="Says how many objects an image shows.",
    architectures={"mean": "the mean of all pixels"},
    parameters=common(batch=8, rate=0.1, decay=0.0, ema=0.0, warmup=0.0, anneal="cosine"),
    expected=(),
    size="0 weights",
    reference_time="no time",
)


# inference/kit/task_kinds/counting/answer.py
def read(
    spec: ModelSpec, outputs: Arrays, placements: Sequence[Placement], requested: Requested
) -> list[list[dict[str, Any]]]:
    """One number for each picture."""
    return [[{"count": round(float(np.asarray(row).item()), 2)}] for row in outputs[spec.outputs["count"]]]


# inference/kit/task_kinds/counting/__init__.py
SERVED = ServedTask(
    name="counting",
    data=(SHAPES,),
    answer=Answer(outputs=("count",), read=read),
    scoring="tests.architecture.counting.scoring",
    pages=Pages(
        figures=(Figure("mae", "MAE", "Mean difference to the objects that are there"),),
        headline=("mae",),
        sections=("inference/results/_images.html",),
        caption="inference/task_kinds/counting/_caption.html",
        try_script="inference/task_kinds/counting.js",
        snippet='print(answer.json()["predictions"][0]["count"])',
    ),
)
