"""Every response of a GET has the form that the description of the API gives it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import reduce
from typing import Any

from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator

from tests.conftest import signed_in
from tests.matrix import answers, world

#: Routes of training whose lists and files have no description of their own.
NOT_COMPARED = ("/api/v1/training/jobs/1/", "/api/v1/studies/1/", "/api/v1/reports/1/versions/")


def resolved(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference, alone or as one of several, leads to."""
    while "$ref" in schema or "allOf" in schema or "oneOf" in schema:
        schema = schema.get("allOf", schema.get("oneOf", [schema]))[0]
        if "$ref" in schema:
            schema = reduce(lambda part, name: part[name], schema["$ref"].split("/")[1:], root)
    return schema


def differences(value: Any, schema: dict[str, Any], root: dict[str, Any], place: str = "") -> Iterator[str]:
    """Where a value has another type than described, keys that are not described, or lacks required ones."""
    schema = resolved(schema, root)
    types, described = schema.get("type", ()), schema.get("properties")
    if isinstance(value, list) and types:
        if types != "array" and "array" not in types:
            yield f"{place}: is a list"
        for item in value[:3] if "items" in schema else ():
            yield from differences(item, schema["items"], root, f"{place}[]")
    elif isinstance(value, dict) and types:
        if types != "object" and "object" not in types:
            yield f"{place}: is an object"
        if described is not None:
            yield from (f"{place}.{name}: not described" for name in value.keys() - described.keys())
            yield from (f"{place}.{name}: missing" for name in set(schema.get("required", ())) - value.keys())
            for name in value.keys() & described.keys():
                yield from differences(value[name], described[name], root, f"{place}.{name}")


def test_differences_are_found():
    part = {"type": "object", "required": ["a"], "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    root = {"components": {"Part": part}}
    described = {"type": "array", "items": {"$ref": "#/components/Part"}}

    assert list(differences([{"a": [1]}], described, root)) == []
    assert list(differences([{"b": 1}], described, root)) == ["[].b: not described", "[].a: missing"]
    assert list(differences({"a": [{}]}, part, root)) == [".a[]: is an object"]
    assert list(differences({"a": {}}, part, root)) == [".a: is an object"]
    assert list(differences({"a": []}, described, root)) == [": is an object"]


def test_responses_are_as_described(ground: world.World):
    with GENERATOR_STATS.silence():
        root = json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str))
    operations = {
        re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) + r"\Z"): methods["get"]["responses"]
        for path, methods in sorted(root["paths"].items(), key=lambda item: item[0].count("{"))
        if "get" in methods
    }
    client, compared, wrong = signed_in(ground.people["operator"]), 0, []

    for path in answers.addresses(ground)[0].values():
        responses = next((found for pattern, found in operations.items() if pattern.match(path.split("?")[0])), None)
        if responses is None or path.startswith(NOT_COMPARED):
            continue
        response = client.get(path)
        body = b"" if response.status_code >= 400 or getattr(response, "is_async", False) else b"".join(response)
        if response.status_code >= 400:
            continue
        if str(response.status_code) not in responses:
            wrong.append(f"{path}: {response.status_code} is not described")
        elif response.headers.get("Content-Type") == "application/json":
            content = responses[str(response.status_code)].get("content", {})
            schema = content.get("application/json", {}).get("schema", {})
            if not content:
                wrong.append(f"{path}: no content is described")
            elif schema.get("format") != "binary":
                compared += 1
                wrong += [f"{path} {one}" for one in sorted(set(differences(json.loads(body), schema, root)))]

    assert (wrong, compared > 150) == ([], True), f"{compared} compared: " + "\n".join(wrong)
