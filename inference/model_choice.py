"""A choice among versions of models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.forms.models import ModelChoiceIterator


class _Labels(ModelChoiceIterator):
    """The choices as keys and labels: rows of hundreds of versions are not made for three columns."""

    def __iter__(self) -> Iterator[Any]:
        field: Any = self.field
        if field.empty_label is not None:
            yield "", field.empty_label
        for pk, name, number in self.queryset.values_list("pk", "model__name", "number"):
            yield pk, f"{name} v{number}"  # as str() of a version


class _Select(forms.Select):
    """A list of plain options: hundreds of them are made without attributes of their own."""

    def optgroups(self, name: str, value: Any, attrs: Any = None) -> list[Any]:
        chosen = {str(key) for key in value}
        options = [
            {
                "value": key,
                "label": label,
                "attrs": {"selected": True} if str(key) in chosen else {},
                "template_name": self.option_template_name,
            }
            for key, label in self.choices
        ]
        return [(None, options, 0)]


class ModelVersionChoice(forms.ModelChoiceField):
    """A choice of one version, by its name."""

    iterator = _Labels
    widget = _Select
