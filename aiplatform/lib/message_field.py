"""A column that keeps a message as code and facts, and the shape of one in the API."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from rest_framework import serializers

from aiplatform.lib.wording import Message


class _Encoder(json.JSONEncoder):
    """For who dumps the value of the column itself, as the admin site does."""

    def default(self, o: Any) -> Any:
        return o.as_json() if isinstance(o, Message) else super().default(o)


class MessageField(models.JSONField):
    """Keeps {"code", "facts"} and gives a `Message`, whose `str` is the text in the reader's language. Empty: {}."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs |= {"default": Message, "blank": True, "encoder": _Encoder}
        super().__init__(*args, **kwargs)

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        return (
            name,
            path,
            args,
            {key: value for key, value in kwargs.items() if key not in ("default", "blank", "encoder")},
        )

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        if value == "{}":  # most rows say nothing
            return Message()
        decoded = super().from_db_value(value, expression, connection)
        return Message.from_json(decoded) if isinstance(decoded, dict) else decoded  # else one key of it was asked for

    def to_python(self, value: Any) -> Any:
        return Message.from_json(value)

    def get_prep_value(self, value: Any) -> Any:
        return super().get_prep_value(value.as_json() if isinstance(value, Message) else value)

    def value_to_string(self, obj: Any) -> Any:
        return self.get_prep_value(self.value_from_object(obj))


class MessageOut(serializers.Serializer):
    """A message for scripts: a stable code, and the facts that fill its text. Both empty where nothing is to say."""

    code = serializers.CharField()
    facts = serializers.DictField(child=serializers.JSONField())

    def to_representation(self, instance: Message) -> dict[str, Any]:
        return {"code": instance.code, "facts": dict(instance.facts)}  # plain JSON already
