"""Short names of evaluations that stand beside each other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inference.models import Evaluation

LONG = 24  # letters up to which a name is shown as it is
_PART = re.compile(r"[^\s_\-/·:]+[\s_\-/·:]*")


def short_names(rows: Sequence[Evaluation]) -> dict[int, str]:
    """A name of each evaluation, by its number, without the beginning that all of them share; no two are the same.

    Names that are all short stay whole; those that are the same get their numbers.
    """
    names = shortened([row.job.name for row in rows])
    return {
        row.pk: f"{name} (#{row.pk})" if names.count(name) > 1 else name for row, name in zip(rows, names, strict=True)
    }


def shortened(names: Sequence[str]) -> list[str]:
    """The names without the words that all of them begin with, if one of them is long."""
    if len(names) < 2 or max(map(len, names)) <= LONG:
        return list(names)
    parts = [_PART.findall(name) for name in names]
    shared = 0
    while all(len(own) > shared + 1 for own in parts) and len({own[shared] for own in parts}) == 1:
        shared += 1
    if not shared:
        return list(names)
    return ["… " + "".join(own[shared:]) for own in parts]
