"""What of two OpenAPI descriptions breaks callers of the older one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: Words for people; a better sentence is no other API.
TEXTS = {"title", "description", "summary", "tags", "operationId", "example", "examples"}
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def contract(described: Any) -> Any:
    """The description without words for people."""
    if isinstance(described, list):
        return [contract(item) for item in described]
    if not isinstance(described, dict):
        return described
    plain = {key: value for key, value in described.items() if key not in TEXTS or isinstance(value, dict)}
    return {key: contract(value) for key, value in plain.items()}


@dataclass
class Shape:
    """What a value may be, references and choices resolved."""

    name: str  # of the component, or of where it lies
    types: set[str] | None = None  # None: anything
    values: set[str] | None = None  # None: not an enumeration
    format: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    items: Any = None


def breaking(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Sorted sentences, one for each change that breaks a caller of `old`."""
    return sorted(set(_Comparison(old, new).all()))


class _Comparison:
    def __init__(self, old: dict[str, Any], new: dict[str, Any]) -> None:
        self.old, self.new = old, new
        self.seen: set[tuple[str, str, bool]] = set()

    def all(self) -> Iterator[str]:
        for path, methods in self.old.get("paths", {}).items():
            for method in METHODS:
                if (operation := methods.get(method)) is None:
                    continue
                place = f"{method.upper()} {path}"
                other = self.new.get("paths", {}).get(path, {}).get(method)
                if other is None:
                    yield f"{place}: removed"
                else:
                    yield from self.operation(place, operation, other)

    def operation(self, place: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
        before = {(p["in"], p["name"]): p for p in old.get("parameters", ())}
        after = {(p["in"], p["name"]): p for p in new.get("parameters", ())}
        for key, parameter in before.items():
            at = f"{place} {key[0]} parameter {key[1]}"
            if key not in after:
                yield f"{at}: removed"
            else:
                yield from self.schemas(at, parameter.get("schema", {}), after[key].get("schema", {}), sent=True)
        for key, parameter in after.items():
            if parameter.get("required") and not before.get(key, {}).get("required"):
                yield f"{place} {key[0]} parameter {key[1]}: required now"
        yield from self.bodies(f"{place} body", old.get("requestBody", {}), new.get("requestBody", {}), sent=True)
        if new.get("requestBody", {}).get("required") and "requestBody" not in old:
            yield f"{place} body: required now"
        for status, answer in old.get("responses", {}).items():
            if status not in new.get("responses", {}):
                yield f"{place} answer {status}: removed"
            else:
                yield from self.bodies(f"{place} answer {status}", answer, new["responses"][status], sent=False)

    def bodies(self, place: str, old: dict[str, Any], new: dict[str, Any], *, sent: bool) -> Iterator[str]:
        for kind, media in old.get("content", {}).items():
            other = new.get("content", {}).get(kind)
            if other is None:
                yield f"{place}: no longer {kind}"
            else:
                yield from self.schemas(place, media.get("schema", {}), other.get("schema", {}), sent=sent)

    def schemas(self, place: str, old: Any, new: Any, *, sent: bool) -> Iterator[str]:
        """`sent`: the caller writes it, so it must go on being taken; else the caller reads it."""
        before, after = self.shape(place, old, self.old), self.shape(place, new, self.new)
        if (mark := (before.name, after.name, sent)) in self.seen:
            return
        self.seen.add(mark)
        place = before.name
        yield from _types(place, before, after, sent=sent)
        for name, value in before.fields.items():
            if name in after.fields:
                yield from self.schemas(f"{place}.{name}", value, after.fields[name], sent=sent)
            else:
                yield f"{place}.{name}: removed"
        if sent:
            yield from (f"{place}.{name}: required now" for name in sorted(after.required - before.required))
        else:
            gone = (before.required - after.required) & set(after.fields)
            yield from (f"{place}.{name}: may be missing now" for name in sorted(gone))
        if before.items is not None and after.items is not None:
            yield from self.schemas(f"{place}[]", before.items, after.items, sent=sent)

    def shape(self, place: str, schema: Any, whole: dict[str, Any]) -> Shape:
        if not isinstance(schema, dict):
            return Shape(place)
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            named = self.shape(name, whole.get("components", {}).get("schemas", {}).get(name, {}), whole)
            named.name = name if named.fields else place
            return named
        if parts := schema.get("allOf"):
            return _merged(place, [self.shape(place, part, whole) for part in parts], both=True)
        if parts := schema.get("oneOf") or schema.get("anyOf"):
            return _merged(place, [self.shape(place, part, whole) for part in parts], both=False)
        kinds = schema.get("type")
        types = None if kinds is None else {kinds} if isinstance(kinds, str) else set(kinds)
        values = {repr(value) for value in schema["enum"]} if "enum" in schema else None
        if values == {"None"} or types == {"null"}:  # both are written
            types, values = {"null"}, {"None"}
        return Shape(
            place, types, values, schema.get("format", ""), schema.get("properties", {}),
            set(schema.get("required", ())), schema.get("items"),
        )  # fmt: skip


def _merged(place: str, parts: list[Shape], *, both: bool) -> Shape:
    """One of `parts`, or with `both` all of them at once."""
    if len(parts) == 1:
        return parts[0]
    whole = Shape(place)
    types = [part.types for part in parts if part.types is not None]
    if both:
        whole.types = set.intersection(*types) if types else None
    elif len(types) == len(parts):
        whole.types = set.union(*types)
    values = [part.values for part in parts if part.values is not None]
    if values and (both or len(values) == len(parts)):
        whole.values = set.union(*values)
    for part in parts:
        whole.fields |= part.fields
        whole.required |= part.required
        whole.items = whole.items if part.items is None else part.items
        whole.format = whole.format or part.format
    return whole


def _types(place: str, old: Shape, new: Shape, *, sent: bool) -> Iterator[str]:
    wide, narrow = (new.types, old.types) if sent else (old.types, new.types)
    if not _covers(wide, narrow):
        yield f"{place}: was {_said(old.types)}, is {_said(new.types)}"
    elif old.format and old.format != new.format:
        yield f"{place}: was {old.format}, is {new.format or 'any format'}"
    if new.values is not None and (lost := (old.values or set()) - new.values):
        yield f"{place}: no longer {', '.join(sorted(lost))}"
    if sent and old.values is None and new.values is not None and old.types is not None:
        yield f"{place}: only some values now"


def _covers(wide: set[str] | None, narrow: set[str] | None) -> bool:
    if wide is None:
        return True
    if narrow is None:
        return False
    return narrow <= (wide | {"integer"} if "number" in wide else wide)


def _said(types: set[str] | None) -> str:
    return "anything" if types is None else " or ".join(sorted(types))
