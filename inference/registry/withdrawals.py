"""Use of models by rows of other owners, which ends when a model is deleted or no longer shared.

Packages above the registry register how their rows use models; the registry calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aiplatform.lib.registry import Registry
from inference.registry.models import Model, ModelVersion


@dataclass(frozen=True)
class Use:
    """How rows of one kind use models.

    Attributes:
        count_others: counts rows of other owners that use a model.
        stop_unshared: stops rows whose owner may no longer use a model.
        disable: takes a model, or one version of it, from rows of other owners before it is deleted.
    """

    name: str
    count_others: Callable[[Model], int]
    stop_unshared: Callable[[Model], None]
    disable: Callable[[Model, ModelVersion | None], None]


USES: Registry[Use] = Registry("use of models")


def count_others(model: Model) -> int:
    """Count rows of other owners that use a model; only the number, as some may be private."""
    return sum(use.count_others(model) for use in USES)


def stop_unshared(model: Model) -> None:
    """Stop what uses a model that its owner no longer shares."""
    for use in USES:
        use.stop_unshared(model)


def disable(model: Model, version: ModelVersion | None = None) -> None:
    """Take a model, or one version of it, from rows of other owners before it is deleted."""
    for use in USES:
        use.disable(model, version)
