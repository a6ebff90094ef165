"""Versions of the registry as what trainings start from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from accounts.models import User
from inference.registry.models import ModelVersion
from inference.registry.querysets import ModelVersionQuerySet
from training.presets.catalog import PRESETS
from training.runs.pretrained_weights import FILE, Models, RegisteredModel

WEIGHTS = "model.safetensors"
OFFERED = 50


def _visible_to(user: User) -> ModelVersionQuerySet:
    rows: ModelVersionQuerySet = ModelVersion.objects.visible_to(user).select_related("model__owner")
    return rows


def full_name(version: ModelVersion) -> str:
    """OWNER/NAME v2, as a parameter names it."""
    return f"{version.model.owner.username}/{version}"


def has_weights(version: ModelVersion) -> bool:
    """Return whether the version has weights that can be trained further, next to the model that predicts."""
    return _has_weights(version.files)


def _has_weights(files: Sequence[Mapping[str, Any]]) -> bool:
    return any(entry["name"] == WEIGHTS for entry in files)


def goes_on(version: ModelVersion) -> bool:
    """Return whether a preset can start a training from it."""
    preset = PRESETS.get(version.preset)
    fit = has_weights(version) and not version.is_archived
    return fit and preset is not None and FILE in {param.name for param in preset.parameters}


def find_named(user: User, owner: str, name: str, which: int | str) -> Sequence[RegisteredModel]:
    """What the user may see of a name and a number or an alias; their own alone where no owner is named."""
    rows = _visible_to(user).filter(model__name=name)
    rows = rows.filter(number=which) if isinstance(which, int) else rows.filter(aliases__name=which)
    if owner:
        rows = rows.filter(model__owner__username=owner)
    elif rows.filter(model__owner=user).exists():
        rows = rows.filter(model__owner=user)
    return [
        RegisteredModel(
            full_name(row),
            row.path,
            row.preset,
            WEIGHTS if has_weights(row) else "",
            row.params,
            row.architecture,
            row.is_archived,
        )
        for row in rows[:3]
    ]


def newest(user: User) -> Sequence[str]:
    """Full names of the newest versions with weights that the user may see."""
    rows = _visible_to(user).in_use().order_by("-pk")
    newest_rows = rows.values_list("model__owner__username", "model__name", "number", "files")[:OFFERED]
    return [f"{owner}/{name} v{number}" for owner, name, number, files in newest_rows if _has_weights(files)]


MODELS = Models(find_named, newest)
