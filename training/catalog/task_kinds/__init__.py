"""What models can learn to do: one file for each task, and one line here.

The presets name their task (training/presets/*_card.py). What a task is to models at work, its evaluation, its
service, its pages, stands in inference/kit/task_kinds under the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiplatform.lib.registry import Registry
from training.catalog.task_kinds import (
    anomaly,
    classification,
    detection,
    embedding,
    instances,
    keypoints,
    segmentation,
    tagging,
)
from training.catalog.task_kinds.task import Task

if TYPE_CHECKING:
    from datasets.models import DatasetVersion

#: In the order in which a dataset version looks for the task it suits.
TASKS: Registry[Task] = Registry("task")
TASKS.register(detection.TASK, classification.TASK, segmentation.TASK, keypoints.TASK, embedding.TASK)
TASKS.register(anomaly.TASK, instances.TASK, tagging.TASK)


def preset_for(version: DatasetVersion) -> str:
    """Return the default preset of a training on `version`; "" if no task accepts it."""
    return preset_for_task(version.task)


def preset_for_task(data: str) -> str:
    """The same for the task that a version is annotated for."""
    return next((task.preset for task in TASKS if data in task.data), "")
