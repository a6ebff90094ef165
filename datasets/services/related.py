"""What was made with a dataset. Apps above register how to find it; the page of the dataset links it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accounts.access.permissions import Action
from aiplatform.lib.registry import Registry

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

    from accounts.models import User
    from datasets.models import Dataset

#: Text and address of an object, or of a list that shows several.
Link = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Related:
    """A kind of object that is made with datasets.

    Args:
        find: the links that a user may see for one dataset.
    """

    name: str
    label: StrPromise | str
    needs: Action
    find: Callable[[User, Dataset], Sequence[Link]]


KINDS: Registry[Related] = Registry("kind of object made with a dataset")
register = KINDS.register  # called from `AppConfig.ready()`


def list_related(user: User, dataset: Dataset) -> list[tuple[StrPromise | str, Sequence[Link]]]:
    """Return label and links of each kind that has any."""
    rows = [(kind.label, kind.find(user, dataset)) for kind in KINDS if user.can(kind.needs)]
    return [(label, links) for label, links in rows if links]
