"""Choices among hundreds of rows: an option is made of the columns that it shows, without an instance of the model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.forms.models import ModelChoiceIterator


class _Options(ModelChoiceIterator):
    """The choices as keys and texts."""

    def __iter__(self) -> Iterator[Any]:
        field: Any = self.field
        if field.empty_label is not None:
            yield "", field.empty_label
        for pk, *values in field.rows():
            yield pk, field.text_of(*values)


class RowSelect(forms.Select):
    """A list of options; Django makes ten times as much of each."""

    def optgroups(self, name: str, value: list[str], attrs: dict[str, Any] | None = None) -> list[Any]:
        chosen = set(value)
        options = [
            {
                "value": key,
                "label": text,
                "attrs": {"selected": True} if str(key) in chosen else {},
                "template_name": self.option_template_name,
            }
            for key, text in self.choices
        ]
        return [(None, options, 0)]


class RowCheckboxes(forms.CheckboxSelectMultiple):
    """Boxes to tick, made as sparingly."""

    def optgroups(self, name: str, value: list[str], attrs: dict[str, Any] | None = None) -> list[Any]:
        chosen, common = set(value), self.build_attrs(self.attrs, attrs)
        groups = []
        for index, (key, text) in enumerate(self.choices):
            state = {**common, "checked": True} if str(key) in chosen else dict(common)
            if "id" in state:
                state["id"] = self.id_for_label(state["id"], str(index))
            option = {
                "name": name, "type": self.input_type, "value": key, "label": text, "attrs": state,
                "template_name": self.option_template_name, "wrap_label": True,
            }  # fmt: skip
            groups.append((None, [option], index))
        return groups


class _OfRows:
    """What a choice of one row and a choice of several have in common."""

    columns: ClassVar[Iterable[str]] = ()
    queryset: Any
    _shared: list[list[tuple[Any, ...]]] | None = None  # the rows, once one of the fields that share them read them

    def rows(self) -> Iterable[tuple[Any, ...]]:
        """The key and the columns of each row."""
        if self._shared is None:
            return iter(self.queryset.values_list("pk", *self.columns))
        if not self._shared:
            self._shared.append(list(self.queryset.values_list("pk", *self.columns)))
        return self._shared[0]

    def text_of(self, *values: Any) -> str:
        """The text of an option."""
        raise NotImplementedError("Subclasses of RowChoice and RowChoices define text_of().")


class RowChoice(_OfRows, forms.ModelChoiceField):
    """A choice of one row. Subclasses name the columns of an option and make its text of their values."""

    iterator = _Options
    widget = RowSelect


class RowChoices(_OfRows, forms.ModelMultipleChoiceField):
    """A choice of several rows, as `RowChoice`."""

    iterator = _Options
    widget = RowCheckboxes


def offer(rows: QuerySet[Any], *fields: Any) -> None:
    """Let fields of one form with the same columns offer the same rows, which are read once."""
    shared: list[list[tuple[Any, ...]]] = []
    for field in fields:
        field.queryset = rows
        field._shared = shared
