"""The request that changes shapes: its fields, and what is wrong with it named by the place in the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from annotation.services.journal import MAX_EDITS, MAX_REV, BadEdit, Edit

EDIT_LIMIT_TEXT = _("Send 1 to 500 edits at a time.")
PUT, DELETE = "put", "delete"


class WholeField(serializers.IntegerField):
    """A whole number as JSON writes it: no text, no true, no 1.0."""

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return super().to_internal_value(data)


class NameField(serializers.UUIDField):
    """A UUID as text."""

    def __init__(self, **kwargs: Any) -> None:
        text = _("Edits and shapes must be identified by UUIDs.")
        super().__init__(error_messages=dict.fromkeys(("invalid", "required", "null"), text), **kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str):
            self.fail("invalid", value=data)
        return super().to_internal_value(data)


@extend_schema_field({"type": "array", "items": {"type": "array", "items": {"type": "number"}}})
class RingsField(serializers.Field):
    """Lists of points as they came: the shape's kind judges them."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class EditIn(serializers.Serializer):
    """One edit. A deletion needs `id`, `shape`, `op` and `base`; a put also `kind`, `label` and `rings`."""

    default_error_messages = {"invalid": _("An edit must be an object.")}

    id = NameField(help_text="Of this edit; the same edit sent again is stored once.")
    shape = NameField()
    op = serializers.ChoiceField(
        [PUT, DELETE],
        error_messages=dict.fromkeys(("invalid_choice", "required", "null"), _("An edit must be a put or a delete.")),
    )
    base = WholeField(
        min_value=0,
        max_value=MAX_REV - 1,
        help_text="Revision of the shape the edit was made on; 0 for a shape that was just drawn.",
        error_messages=dict.fromkeys(
            ("invalid", "required", "null", "min_value", "max_value"),
            _("The base revision of an edit must be an integer."),
        ),
    )
    kind = serializers.CharField(required=False, help_text="Kind of shape, by its name: bbox, polygon, …")
    label = WholeField(  # type: ignore[assignment]  # a field may be called as an argument of all fields is
        required=False,
        error_messages=dict.fromkeys(("invalid", "null"), _("The dataset does not have this class.")),
    )
    rings = RingsField(required=False, error_messages={"null": _("The shape has no points.")})

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.pop("op") == DELETE:
            return {name: attrs[name] for name in ("id", "shape", "base")}
        missing = [name for name in ("kind", "label", "rings") if name not in attrs]
        if missing:
            raise serializers.ValidationError({missing[0]: [_("A put requires kind, label and rings.")]})
        return attrs


class EditsIn(serializers.Serializer):
    """Edits of one image, in the order they were made."""

    events = EditIn(  # type: ignore[call-arg]  # `many` makes it a list with a length
        many=True,
        allow_empty=False,
        max_length=MAX_EDITS,
        error_messages=dict.fromkeys(("required", "null", "not_a_list", "empty", "max_length"), EDIT_LIMIT_TEXT),
    )


def read(data: Any) -> list[Edit]:
    """Return the edits of a request.

    Raises:
        BadEdit: the first thing that is not as it should be, with the place in the request and the edit's id.
    """
    events = data.get("events") if isinstance(data, Mapping) else None  # of a form: one text, not a list
    serializer = EditsIn(data={"events": events})
    if serializer.is_valid():
        return [Edit(**edit) for edit in serializer.validated_data["events"]]
    *steps, message = _first(serializer.errors)
    event = events[steps[1]] if events and len(steps) > 1 else None
    name = event.get("id") if isinstance(event, Mapping) and steps[2:] != ["id"] else None
    facts = {"event": name} if isinstance(name, str) else {}
    raise BadEdit(message, **facts, path=_path(steps))


def _first(errors: Any) -> list[Any]:
    """Return the path to the first message in a serializer's errors, names and indices, and the message itself."""
    if not isinstance(errors, Mapping):
        return [str(errors[0])]
    key, rest = next(iter(errors.items()))
    return _first(rest) if key == "non_field_errors" else [key, *_first(rest)]


def _path(steps: list[Any]) -> str:
    """Return "events[3].base" for ["events", 3, "base"]."""
    parts = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps]
    return "".join(parts).removeprefix(".")
