"""How answers are described to programs: pieces of JSON Schema (draft 2020-12, as OpenAPI 3.1 has it)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES: Schema = {"type": "boolean"}
SHARE: Schema = {"type": "number", "minimum": 0, "maximum": 1}
BOX: Schema = {
    "type": "array", "items": NUMBER, "minItems": 4, "maxItems": 4,
    "description": "x1, y1, x2, y2 in pixels of the picture.",
}  # fmt: skip
CLASS: Schema = {"class_id": INTEGER, "name": TEXT}


def a_list(of: Schema, description: str = "") -> Schema:
    """A list of things that are alike."""
    return {"type": "array", "items": of} | ({"description": description} if description else {})


def an_object(**properties: Schema) -> Schema:
    """A thing that has all of these."""
    return {"type": "object", "properties": properties, "required": list(properties)}
