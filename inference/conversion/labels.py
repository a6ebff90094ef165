"""What variants, their states and the choices of a conversion are called, for people."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from inference.conversion import engines
from inference.conversion.converter import known

STATE_WORDS = {
    known.ACCEPTED: gettext_lazy("Accepted"),
    known.REFUSED: gettext_lazy("Loses too much"),
    known.FAILED: gettext_lazy("Cannot be made"),
}
METHOD_WORDS = {
    known.MINMAX: gettext_lazy("Lowest and highest value"),
    known.ENTROPY: gettext_lazy("Least loss of information (entropy)"),
    known.PERCENTILE: gettext_lazy("All but the rarest values (percentile)"),
}
KEEP_WORDS = {
    "fastest": gettext_lazy("The fastest that is accepted"),
    "all": gettext_lazy("All that are accepted"),
    "none": gettext_lazy("None"),
}


def texts() -> list[str]:
    """Every text of a variant that a page translates."""
    return [text for target in known.TARGETS.values() for text in (target.label, target.about)]


def label(target: str) -> str:
    """What a variant is called."""
    if target == known.SOURCE:
        return _("As it is")
    return _(known.TARGETS[target].label) if target in known.TARGETS else target


def target_words() -> list[tuple[str, Any]]:
    """Choices of a variant field: each variant that can be made here with what it is good for."""
    offered = [known.TARGETS[name] for name in engines.on_offer()]
    return [(target.name, f"{_(target.label)}: {_(target.about)}") for target in offered]
