"""Template filters of conversions."""

from __future__ import annotations

from django import template
from django.utils.translation import gettext as _

from inference.conversion import labels

register = template.Library()
register.filter("variant_label", labels.label)


@register.filter
def signed(value: float) -> str:
    """0.0043 → "+0.0043", with a true minus sign."""
    return f"{value:+.4f}".replace("-", "−")


@register.filter
def times_faster(ratio: float) -> str:
    """A ratio of times → "1.35× faster" or "1.20× slower"."""
    text = _("%(ratio)s× faster") if ratio >= 1 else _("%(ratio)s× slower")
    return text % {"ratio": _ratio(ratio)}


@register.filter
def times_smaller(ratio: float) -> str:
    """A ratio of sizes → "2.97× smaller" or "1.05× larger"."""
    text = _("%(ratio)s× smaller") if ratio >= 1 else _("%(ratio)s× larger")
    return text % {"ratio": _ratio(ratio)}


def _ratio(ratio: float) -> str:
    return f"{ratio if ratio >= 1 else 1 / ratio:.2f}"
