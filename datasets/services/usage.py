"""Users of dataset versions. Apps above register how to find them, so that nothing in use is deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from aiplatform.lib.registry import Registry, dotted_name

if TYPE_CHECKING:
    from datasets.models import DatasetVersion

#: Answers with one short phrase per user of the version: "training job 12 (cells)", "annotation project Blood".
Asker = Callable[["DatasetVersion"], list[str]]
ASKERS: Registry[Asker] = Registry("user of versions", name=dotted_name)

register = ASKERS.register  # called from `AppConfig.ready()`


def users_of(version: DatasetVersion) -> list[str]:
    """Describe everything that uses `version`."""
    return [phrase for asker in ASKERS for phrase in asker(version)]
