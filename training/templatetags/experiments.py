"""Figures of trainings on pages."""

from __future__ import annotations

from django import template

from aiplatform.lib import markdown
from training.catalog import metric_labels, param_labels
from training.experiments.comparison import ParamGroup

register = template.Library()
register.filter("figure_name", metric_labels.word)
register.filter("param_name", param_labels.label)
register.filter("markdown", markdown.render)


@register.filter
def figure(value: float | None) -> str:
    """Four digits: 0.9124, 12.35, 1.2e-05; a dash for None."""
    return "–" if value is None else f"{value:.4g}"


@register.filter
def is_number(value: object) -> bool:
    """Whether a parameter is a number, and not true or false."""
    return isinstance(value, int | float) and not isinstance(value, bool)


@register.filter
def parameter(value: object) -> str:
    """A parameter as people read it: four digits of a number."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@register.filter
def params_count(groups: list[ParamGroup]) -> int:
    """How many parameters groups have together."""
    return sum(len(group.rows) for group in groups)
