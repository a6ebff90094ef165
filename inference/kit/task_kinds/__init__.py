"""Tasks of models at work: one folder for each task, and one line here. Copied into runs, so without the platform.

A folder holds what the task is (`__init__.py`), how a model's answer is read (`answer.py`) and how answers are scored
(`scoring.py`, loaded only by an evaluation). Label and icon are those of
training/catalog/task_kinds, under the same name.
"""

from __future__ import annotations

from inference.kit.contracts.served_task import ServedTask
from inference.kit.task_kinds.anomaly import ANOMALY
from inference.kit.task_kinds.classification import CLASSIFICATION
from inference.kit.task_kinds.detection import DETECTION
from inference.kit.task_kinds.embedding import EMBEDDING
from inference.kit.task_kinds.instances import INSTANCES
from inference.kit.task_kinds.keypoints import KEYPOINTS
from inference.kit.task_kinds.segmentation import SEGMENTATION
from inference.kit.task_kinds.tagging import TAGGING

_KINDS = (DETECTION, CLASSIFICATION, SEGMENTATION, KEYPOINTS, EMBEDDING, ANOMALY, INSTANCES, TAGGING)
TASKS: dict[str, ServedTask] = {task.name: task for task in _KINDS}
