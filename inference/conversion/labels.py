"""Labels of variants, their states and the choices of a conversion."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from inference.conversion import engines
from inference.conversion.converter import variant_catalog

STATE_LABELS = {
    variant_catalog.ACCEPTED: gettext_lazy("Accepted"),
    variant_catalog.REFUSED: gettext_lazy("Loss too high"),
    variant_catalog.FAILED: gettext_lazy("Not possible"),
}
METHOD_LABELS = {
    variant_catalog.MINMAX: gettext_lazy("Minimum and maximum"),
    variant_catalog.ENTROPY: gettext_lazy("Entropy (minimum information loss)"),
    variant_catalog.PERCENTILE: gettext_lazy("Percentile (ignore outliers)"),
}
KEEP_LABELS = {
    "fastest": gettext_lazy("The fastest accepted variant"),
    "all": gettext_lazy("All accepted variants"),
    "none": gettext_lazy("None"),
}


def texts() -> list[str]:
    """Every text of a variant that a page translates."""
    return [text for target in variant_catalog.TARGETS.values() for text in (target.label, target.description)]


def label(target: str) -> str:
    """What a variant is called."""
    if target == variant_catalog.SOURCE:
        return pgettext("model variant", "Original")
    return _(variant_catalog.TARGETS[target].label) if target in variant_catalog.TARGETS else target


def target_words() -> list[tuple[str, Any]]:
    """Choices of a variant field: each variant that can be made here with what it is good for."""
    offered = [variant_catalog.TARGETS[name] for name in engines.available()]
    return [(target.name, f"{_(target.label)}: {_(target.description)}") for target in offered]
