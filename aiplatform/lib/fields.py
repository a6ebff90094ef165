"""What people must fill in of a form, said before anything is refused."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms import BoundField


def must_be_filled_in(bound: BoundField) -> bool:
    """Whether leaving this field empty is refused, and it can be left empty.

    A form names in `required_where_shown` fields that it requires only with certain other choices, which show them.
    """
    field = bound.field
    if field.disabled:
        return False
    if not field.required and bound.name not in getattr(bound.form, "required_where_shown", ()):
        return False
    if isinstance(field.widget, forms.CheckboxSelectMultiple):
        return True
    if isinstance(field.widget, forms.RadioSelect):
        return bound.value() in (None, "")
    if isinstance(field, forms.ModelChoiceField):
        return isinstance(field, forms.ModelMultipleChoiceField) or field.empty_label is not None
    widget: Any = field.widget
    if isinstance(field, forms.ChoiceField) and not widget.allow_multiple_selected:
        return any(value in (None, "") for value, _label in widget.choices)
    return True
