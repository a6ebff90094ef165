"""Names of compared evaluations, and of their parameters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from inference.evaluation.evaluations import PARAMETERS
from inference.evaluation.forms import EvaluationForm
from inference.evaluation.models import Evaluation

MAX_NAME_LENGTH = 24  # letters up to which a name is shown as it is
_BETWEEN = " \t_-/·:"
_PART = re.compile(r"[^\s_\-/·:]+[\s_\-/·:]*")


def short_names(rows: Sequence[Evaluation]) -> dict[int, str]:
    """A name of each evaluation, by its number, without what all of them begin and end with; no two are the same.

    Names that are all short stay whole; those that are the same get their numbers.
    """
    names = shortened([row.job.name for row in rows])
    return {
        row.pk: f"{name} (#{row.pk})" if names.count(name) > 1 else name for row, name in zip(rows, names, strict=True)
    }


def shortened(names: Sequence[str]) -> list[str]:
    """Return the names without the words that all begin and end with, if one of them is long; "…" replaces those."""
    if len(names) < 2 or max(map(len, names)) <= MAX_NAME_LENGTH:
        return list(names)
    parts = [_PART.findall(name) for name in names]
    before = _common_length(parts)
    after = _common_length([[part.rstrip(_BETWEEN) for part in reversed(own[before:])] for own in parts])
    return [
        ("… " if before else "")
        + "".join(own[before : len(own) - after]).rstrip(_BETWEEN)
        + (" …" if after else "")
        for own in parts
    ]  # fmt: skip


def _common_length(parts: Sequence[Sequence[str]]) -> int:
    """How many words all of them begin with, where each keeps one of its own."""
    count = 0
    while all(len(own) > count + 1 for own in parts) and len({own[count] for own in parts}) == 1:
        count += 1
    return count


def parameter_word(name: str) -> str:
    """What a parameter of ours is called in its form; others, such as those of an own script, keep their names."""
    return str(EvaluationForm.base_fields[name].label) if name in PARAMETERS else name
