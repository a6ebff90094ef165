"""What a model learned from, and on which images it is fair to measure it."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from accounts.models import User
from aiplatform.lib.numbers import finite
from datasets.models import DatasetVersion
from inference.kit.samples.ground_truth import UNSEEN
from inference.registry.models import ModelVersion

AUTO = "auto"
"""In place of a split: the one that says most about what the model can do."""


@dataclass(frozen=True)
class TrainingData:
    """The dataset version that a preset trained a model on, and how the preset divided it."""

    version: DatasetVersion
    train: str  # names of splits, separated by commas
    evaluate: str
    folds: int = 0  # of a cross-validation, and the one that was scored on
    fold: int = 0
    group_by: str = ""  # what kept images together

    @property
    def splits(self) -> Set[str]:
        return {name.strip() for name in self.train.split(",") if name.strip()}

    def for_run(self) -> dict[str, Any]:
        """What the evaluator reads."""
        own = {"train": self.train, "evaluate": self.evaluate, "folds": self.folds, "fold": self.fold or 1}
        return {"dir": str(self.version.path), "group_by": self.group_by, **own}


def for_model(model: ModelVersion, *, owner: User) -> TrainingData | None:
    """Return the training data of a model; None if no preset trained it, or `owner` may not use the data.

    A conversion learned what the version that it was made of learned, and says so itself.
    """
    by_preset = model.source in (ModelVersion.Source.TRAINING, ModelVersion.Source.CONVERTED) and model.preset
    if not by_preset or not model.dataset_version_id:
        return None
    version = DatasetVersion.objects.usable_by(owner).filter(pk=model.dataset_version_id).first()
    if version is None or not version.is_ready:
        return None
    train, evaluate = model.params.get("train_splits"), model.params.get("eval_split")
    folds, fold = (int(finite(model.params.get(name)) or 0) for name in ("folds", "fold"))  # its file may say anything
    return TrainingData(
        version, str("train" if train is None else train), str("val" if evaluate is None else evaluate), folds, fold,
        str(model.params.get("group_by") or ""),
    )  # fmt: skip


def best_split(model: ModelVersion, version: DatasetVersion, *, user: User) -> str:
    """Return the split to evaluate on: test, else val, else what the model was not trained on; "" is all images."""
    learned = for_model(model, owner=user)
    same_dataset = learned is not None and learned.version.dataset_id == version.dataset_id
    for name in ("test", "val"):
        if version.splits.get(name) and not (learned and same_dataset and name in learned.splits):
            return name
    return UNSEEN if same_dataset else ""


def repeats(model: ModelVersion, version: DatasetVersion, split: str, *, user: User) -> bool:
    """Return whether the model was trained on images of this split, as far as the names of splits show."""
    learned = for_model(model, owner=user)
    if learned is None or learned.version.dataset_id != version.dataset_id:
        return False
    names = {name for name, count in version.splits.items() if name and count}
    return split == "" or split in learned.splits or (not names and split != UNSEEN)
