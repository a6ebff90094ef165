"""Template filters of conversions."""

from __future__ import annotations

from django import template

from inference.conversion import labels

register = template.Library()
register.filter("variant_label", labels.label)


@register.filter
def signed(value: float) -> str:
    """0.0043 → "+0.0043", with a true minus sign."""
    return f"{value:+.4f}".replace("-", "−")
