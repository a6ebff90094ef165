"""Figures of trainings on pages."""

from __future__ import annotations

from django import template

from aiplatform.lib import markdown
from training.catalog import metric_labels

register = template.Library()
register.filter("figure_name", metric_labels.word)
register.filter("markdown", markdown.render)


@register.filter
def figure(value: float) -> str:
    """Four digits: 0.9124, 12.35, 1.2e-05."""
    return f"{value:.4g}"


@register.filter
def is_number(value: object) -> bool:
    """Whether a parameter is a number, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@register.filter
def parameter(value: object) -> str:
    """A parameter as people read it: five digits of a number."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "–"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
