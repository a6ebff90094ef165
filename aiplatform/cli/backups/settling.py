"""Backup reconciliation: make restored rows and files agree, so that nothing runs twice."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Model, Value
from django.db.models.functions import Concat, Substr

from annotation.models import AnnotationSet
from datasets.models import DatasetVersion, Import
from inference.registry.models import ModelVersion
from workers.core.models import Attempt
from workers.images.models import Engine, State
from workers.jobs import backup_reconciliation

ASIDE = "newer-than-the-database"
_VERSION = re.compile(r"v(\d+)\Z")


def settle(*, made_at: datetime, moved: tuple[str, str], keep_queue: bool) -> dict[str, Any]:
    """Set aside files the database does not know, correct paths in rows, and end what was running.

    Returns:
        {"lost": job numbers, "waiting": how many, "set_aside": names}.
    """
    aside = set_aside(Path(settings.DATA_ROOT))
    with transaction.atomic():
        if moved[0] != moved[1]:
            for column in ("root", "images_root"):
                rows = DatasetVersion.objects.filter(**{f"{column}__startswith": f"{moved[0]}/"})
                rows.update(**{column: Concat(Value(moved[1]), Substr(column, len(moved[0]) + 1))})
            Engine.objects.update(state=State.NEW)  # their programs name the folder where they were built
        settled = backup_reconciliation.settle(made_at=made_at, keep_queue=keep_queue)
    return {"lost": list(settled.lost), "waiting": settled.waiting, "set_aside": aside}


def set_aside(root: Path) -> list[str]:
    """Move files that are newer than the database aside, as new rows will need their paths.

    Returns:
        Names relative to the data root, as they were.
    """
    checks: list[tuple[str, Callable[[tuple[str, ...]], bool]]] = [
        ("jobs/*/*", _knows(Attempt, "job", "number")),
        ("curves/*/*", _knows(Attempt, "job", "number")),
        ("datasets/*/v*", _knows(DatasetVersion, "dataset", "number", numbered=True)),
        ("models/*/v*", _knows(ModelVersion, "model", "number", numbered=True)),
        ("thumbnails/*", _knows(DatasetVersion, "pk")),
        ("imports/*", _knows(Import, "pk")),
        ("exports/annotation-*", _knows(AnnotationSet, "pk")),
    ]
    moved = []
    for pattern, is_known in checks:
        for path in sorted(root.glob(pattern)):
            relative = path.relative_to(root)
            if is_known(relative.parts[1:]):
                continue
            target = root / ASIDE / relative
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            moved.append(str(relative))
    return moved


def _knows(model: type[Model], *columns: str, numbered: bool = False) -> Callable[[tuple[str, ...]], bool]:
    """Return a function that tells whether a row exists for a path; unknown names are left alone."""
    rows = {tuple(map(str, row)) for row in model._default_manager.values_list(*columns)}

    def knows(parts: tuple[str, ...]) -> bool:
        names = [part.removeprefix("annotation-") for part in parts]
        if numbered:
            match = _VERSION.fullmatch(names[-1])
            names[-1] = match.group(1) if match else names[-1]
        return not all(name.isdigit() for name in names) or tuple(names) in rows

    return knows
