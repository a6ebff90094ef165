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


class ModelVersionChoice(forms.ModelChoiceField):
    """A choice of one version, by its name."""

    iterator = _Labels
