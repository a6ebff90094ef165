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
MAX_UNKNOWN = 20
HELP = gettext_lazy("{evaluate.AP50} is replaced by a metric of a step whose metrics are connected.")
_WORD = re.compile(r"(?<![${])\{([A-Za-z_][A-Za-z0-9_.@/-]{0,119})\}")


def words(text: str) -> list[str]:
    """The figures that a text names, in its order, each once."""
    return list(dict.fromkeys(_WORD.findall(text)))


def check(text: str, linked: Sequence[str], steps: Iterable[str]) -> None:
    """Refuse metrics of steps that are not connected.

    Args:
        linked: steps whose figures do.
        steps: all of the pipeline.

    Raises:
        Invalid: one for each.
    """
    names, refusals = set(steps), Refusals()
    for word in words(text):
        step, dot, _name = word.partition(".")
        with refusals:
            if dot and step in names and step not in linked:
                message = _("“{%(word)s}” is unknown here: connect the metrics of %(step)s with “Metrics”.")
                raise Invalid(message % {"word": word, "step": step}, field="text")
    refusals.end()


def filled(text: str, references: Sequence[Mapping[str, Any]]) -> tuple[str, list[str]]:
    """Return a text with its metrics filled in, and the placeholders that are not metrics.

    Args:
        references: inputs of `PORT`. Without any the text is returned unchanged and nothing is unknown.
    """
    if not references:
        return text, []
    figures = spelled(_named(references), words(text))
    unknown: list[str] = []

    def fill_in(match: re.Match[str]) -> str:
        number = finite(figures.get(match[1]))
        if number is None:
            unknown.append(match[1])
            return match[0]
        return digits(number)

    result = _WORD.sub(fill_in, text)
    return result, list(dict.fromkeys(unknown))[:MAX_UNKNOWN]


def unknown_message(unknown: Sequence[str]) -> Message:
    """Return the message about placeholders that are not metrics; empty where there are none."""
    return wording.message("pipeline.figures_unknown", names=", ".join(unknown)) if unknown else Message()


def _named(references: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the metrics by name and by STEP.NAME; a step of an inner pipeline is available by both of its names."""
    values_by_name = by_name(references)
    for reference in references:
        for step in str(reference.get("step", "")).split("/"):
            values_by_name |= {f"{step}.{name}": value for name, value in reference.get("values", {}).items()}
    return values_by_name


def digits(number: float) -> str:
    """A number to three significant digits: 0.912, 1230000, 1.2e-07."""
    return f"{float(f'{number:.3g}'):.15g}"
