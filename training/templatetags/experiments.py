"""Figures of trainings on pages."""

from __future__ import annotations

from django import template

from aiplatform.lib import markdown
from training import figure_words

register = template.Library()
register.filter("figure_name", figure_words.word)
register.filter("markdown", markdown.render)


@register.filter
def figure(value: float) -> str:
    """Four digits: 0.9124, 12.35, 1.2e-05."""
    return f"{value:.4g}"
