"""Serializers of answers: `class JobOut(OutMixin, serializers.ModelSerializer[Job])`.

A list of rows costs most of its time in its serializer. Django REST framework builds the fields from the model at each
request and looks at every value of every row as if it were the first; what comes out here is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache, cached_property
from inspect import ismethod
from operator import attrgetter
from typing import Any

from rest_framework.fields import Field, SkipField
from rest_framework.relations import PKOnlyObject

Reader = Callable[[Any], Any]


class OutMixin:
    """For model serializers of answers whose fields are the same for every caller."""

    def get_fields(self) -> dict[str, Any]:
        """Copies of the fields, which are built from the model once."""
        kind: Any = type(self)
        return deepcopy(_fields_of(kind))

    @cached_property
    def _readers(self) -> list[tuple[str, Reader, Reader]]:
        """(name, how its value is found in a row, how it is shown) of each field."""
        fields: list[Field[Any, Any, Any, Any]] = list(self._readable_fields)  # type: ignore[attr-defined]  # of serializers
        return [(str(field.field_name), _reader(field), field.to_representation) for field in fields]

    def to_representation(self, instance: Any) -> Any:
        if isinstance(instance, Mapping):
            return super().to_representation(instance)  # type: ignore[misc]  # mixed into serializers, which have it
        shown = {}
        for name, read, show in self._readers:
            try:
                value = read(instance)
            except SkipField:
                continue
            nothing = value is None or (isinstance(value, PKOnlyObject) and value.pk is None)
            shown[name] = None if nothing else show(value)
        return shown


@cache
def _fields_of(kind: Any) -> dict[str, Any]:
    """The fields of a serializer, as its class alone makes them."""
    fields: dict[str, Any] = super(OutMixin, kind()).get_fields()
    return fields


def _reader(field: Field[Any, Any, Any, Any]) -> Reader:
    """How the value of a field is found; by its own way where it has one, or where the plain one leads nowhere."""
    if type(field).get_attribute is not Field.get_attribute:
        return field.get_attribute
    if not field.source_attrs:  # the row itself, for what a method of the serializer makes of it
        return lambda row: row
    plain = attrgetter(".".join(field.source_attrs))

    def read(row: Any) -> Any:
        try:
            value = plain(row)
        except AttributeError:  # of nobody's name, say: the field knows what to show then
            return field.get_attribute(row)
        if ismethod(value):
            return value()
        return field.get_attribute(row) if callable(value) else value  # related rows

    return read
