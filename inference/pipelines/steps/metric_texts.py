"""Texts of steps that name figures: `{judge.AP50}` becomes the number that was measured, to three digits.

A word that is no figure stays as it is, and the step says so. Braces that hold anything else are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.wording import Message
from inference.pipelines.steps.decisions import by_name, spelled

PORT = "figures"
MOST_UNKNOWN = 20
HELP = gettext_lazy("{judge.AP50} stands for a figure of a step whose figures are connected.")
_WORD = re.compile(r"(?<![${])\{([A-Za-z_][A-Za-z0-9_.@/-]{0,119})\}")


def words(text: str) -> list[str]:
    """The figures that a text names, in its order, each once."""
    return list(dict.fromkeys(_WORD.findall(text)))


def check(text: str, linked: Sequence[str], steps: Iterable[str]) -> None:
    """Refuse figures of steps whose figures do not come in.

    Args:
        linked: steps whose figures do.
        steps: all of the pipeline.

    Raises:
        Invalid: one for each.
    """
    known, found = set(steps), Refusals()
    for word in words(text):
        step, dot, _name = word.partition(".")
        with found:
            if dot and step in known and step not in linked:
                said = _("“{%(word)s}” is unknown here: connect the figures of %(step)s with “Figures”.")
                raise Invalid(said % {"word": word, "step": step}, field="text")
    found.end()


def filled(text: str, given: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """A text with its figures, and the words in it that are none.

    Args:
        given: what came in at `PORT`. Where nothing did, the text stays as it is and nothing is unknown.
    """
    if not given:
        return text, []
    figures = spelled(_named(given), words(text))
    unknown: list[str] = []

    def one(match: re.Match[str]) -> str:
        number = finite(figures.get(match[1]))
        if number is None:
            unknown.append(match[1])
            return match[0]
        return digits(number)

    made = _WORD.sub(one, text)
    return made, list(dict.fromkeys(unknown))[:MOST_UNKNOWN]


def said(unknown: Sequence[str]) -> Message:
    """What people are told of words that are no figures; nothing where there are none."""
    return wording.message("pipeline.figures_unknown", names=", ".join(unknown)) if unknown else Message()


def _named(given: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The figures by name and by STEP.NAME, where a step in a pipeline that stands in another goes by both names."""
    found = by_name(given)
    for one in given:
        for step in str(one.get("step", "")).split("/"):
            found |= {f"{step}.{name}": value for name, value in one.get("values", {}).items()}
    return found


def digits(number: float) -> str:
    """A number to three significant digits: 0.912, 1230000, 1.2e-07."""
    return f"{float(f'{number:.3g}'):.15g}"
