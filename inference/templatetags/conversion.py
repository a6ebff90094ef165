"""Template filters of conversions."""

from __future__ import annotations

from django import template

from inference.conversion import words

register = template.Library()
register.filter("variant_label", words.label)
