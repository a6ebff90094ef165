"""What a task is to a training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets.models import DatasetVersion


@dataclass(frozen=True)
class Task:
    """What a model can learn to do.

    Args:
        name: in rows, in model.json and in the API; at most 15 characters.
        label: for people, translated lazily.
        icon: of our own set, see /styleguide/.
        accepts: whether a dataset version carries what a model learns from.
        refusal: the sentence for a version that does not; may use %(preset)s, %(version)s and %(labels)s.
        preset: the name of the one a training takes when nobody chose.
    """

    name: str
    label: Any
    icon: str
    accepts: Callable[[DatasetVersion], bool]
    refusal: Any
    preset: str
