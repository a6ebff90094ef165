"""Who still uses a version. The rooms above register how to ask them, so that nothing in use is deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets.models import DatasetVersion

#: Answers with one short phrase per user of the version: "training job 12 (cells)", "annotation project Blood".
Asker = Callable[["DatasetVersion"], list[str]]
_askers: list[Asker] = []


def register(asker: Asker) -> Asker:
    """Add `asker`; called from `AppConfig.ready()`."""
    if asker not in _askers:
        _askers.append(asker)
    return asker


def users_of(version: DatasetVersion) -> list[str]:
    """Everybody who says to use `version`."""
    return [phrase for asker in _askers for phrase in asker(version)]
