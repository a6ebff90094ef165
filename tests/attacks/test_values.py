"""Values that are no mistake of form but that no column and no calculation takes: a 4xx that names the place."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from rest_framework.exceptions import ParseError, ValidationError
from rest_framework.test import APIClient

from aiplatform.lib import parsers
from tests.attacks.described import lists, query_of
from tests.long_form import examples
from tests.plain_routes import plain_routes

pytestmark = [pytest.mark.django_db, pytest.mark.postgres, pytest.mark.filterwarnings("ignore")]

#: JSON that no route takes, wherever it stands.
#: Before a body is looked at: not allowed, not there, not so, too often; and 401, as nobody's token is a device's.
REFUSED = {401, 403, 404, 405, 429}
NEVER = {
    "1e999": "1e999",
    "-1e999": "-1e999",
    "NaN": "NaN",
    "Infinity": "Infinity",
    "-Infinity": "-Infinity",
    "beyond 64 bits": str(2**63),
    "below 64 bits": str(-(2**63) - 1),
    "5,000 digits": "7" * 5000,
    "NUL": '"a\\u0000b"',
    "half a pair": '"a\\ud800"',
    "a key with NUL": '{"\\u0000": 1}',
    "within a list": "[1.0, 2.0, NaN]",
    "within an object": '{"a": [{"b": 1e999}]}',
}
#: JSON that is right as JSON: a route may take it, but must not break.
ODD = ["-0", "-0.0", "1e300", "-1e300", "1.5", str(2**63 - 1), str(-(2**63)), "true", "null", "[]", "{}", '""',
       '"\\ufffe"', '"9999-12-31T23:59:59Z"', '"0001-01-01T00:00:00Z"', '"99999999999999999999"', '"1e999"',
       '"999999999 23:59:59"', '"P9999999999D"', "[[]]", '[{"a": 1}]', '"\u00b2"']  # fmt: skip
#: Always tried at every route; the others in the long form, as each takes seconds.
NEVER_AT_LEAST = ["NUL", "within an object"]
ODD_AT_LEAST = ["1e300", str(2**63 - 1), '"9999-12-31T23:59:59Z"']


def also(values, short=()):
    """Parameters of the long form: all values that are not in the short one."""
    return [pytest.param(value, marks=pytest.mark.long) for value in values if value not in short]


@pytest.fixture
def client(olga, cluster):
    made = APIClient(raise_request_exception=False)
    made.force_authenticate(olga)
    return made


_described: dict[str, Any] = {}  # the same for everybody, and made in seconds


@pytest.fixture
def schema(client) -> dict[str, Any]:
    if not _described:
        _described.update(client.get("/api/schema/?format=json").json())
    return _described


@pytest.fixture
def operations(schema):
    """(method, path, names of the body's fields) of every operation that may take a body."""
    found = []
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if method in {"post", "put", "patch"}:
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                found.append((method.upper(), _filled(path), _fields(schema, content.get("schema", {}))))
    assert len(found) > 50
    return found


def _filled(path: str) -> str:
    return re.sub(r"\{[^}]+\}", "1", path)


def _fields(schema: dict[str, Any], described: dict[str, Any]) -> list[str]:
    if "$ref" in described:
        described = schema["components"]["schemas"][described["$ref"].rsplit("/", 1)[1]]
    return list(described.get("properties", {}))


def body_of(fields: list[str], value: str) -> bytes:
    return ("{" + ", ".join(f"{json.dumps(name)}: {value}" for name in fields) + "}").encode()


@pytest.mark.parametrize("kind", [*NEVER_AT_LEAST, *also(NEVER, NEVER_AT_LEAST)])
def test_j05_api_refuses_a_value_nobody_can_hold_by_its_place(client, operations, kind):
    wrong = {}
    for method, path, fields in operations:
        answer = client.generic(method, path, body_of(fields, NEVER[kind]), content_type="application/json")
        said = (
            {place.split(".")[0] for place in answer.json().get("errors", {})} if answer.status_code == 400 else set()
        )
        if said < set(fields[:20]) and answer.status_code not in REFUSED:
            wrong[f"{method} {path}"] = (answer.status_code, said)

    assert wrong == {}


@pytest.mark.parametrize("value", [*ODD_AT_LEAST, *also(ODD, ODD_AT_LEAST)])
def test_j05_api_breaks_by_no_value_of_its_fields(client, operations, value):
    wrong = {}
    for method, path, fields in operations:
        answer = client.generic(method, path, body_of(fields, value), content_type="application/json")
        if answer.status_code >= 500:
            wrong[f"{method} {path}"] = answer.status_code

    assert wrong == {}


@pytest.mark.proof
def test_j05_api_breaks_by_no_single_field(client, operations):
    """Each field alone, among others of a harmless kind, which leads further in than all at once."""
    wrong = {}
    for method, path, fields in operations:
        for index, field in enumerate(fields):
            value = ODD[index % len(ODD)]
            body = "{" + ", ".join(f"{json.dumps(name)}: {value if name == field else 1}" for name in fields) + "}"
            answer = client.generic(method, path, body.encode(), content_type="application/json")
            if answer.status_code >= 500:
                wrong[f"{method} {path} {field}={value}"] = answer.status_code

    assert wrong == {}


BODIES = [value.encode() for value in NEVER.values()] + [b"", b"[", b"\xff", b"\xef\xbb\xbf{}", b'{"a":' * 5000]


@pytest.mark.proof
@pytest.mark.parametrize("each", [len(BODIES), pytest.param(1, marks=pytest.mark.long)])
def test_j05_api_breaks_by_no_body_as_a_whole(client, operations, each):
    """The short form asks each route with one body, the next route with the next one."""
    wrong = {
        f"{method} {path} {body[:30]!r}": answer.status_code
        for place, (method, path, _fields) in enumerate(operations)
        for body in BODIES[place % each :: each]
        if (answer := client.generic(method, path, body, content_type="application/json")).status_code >= 500
    }

    assert wrong == {}


def test_j05_api_names_the_place_of_a_number_deep_inside(client):
    body = b'{"name": "a", "params": {"lr": [0.1, 1e999]}, "version": 1}'

    answer = client.generic("POST", "/api/v1/training/jobs/", body, content_type="application/json")

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert list(answer.json()["errors"]) == ["params.lr.1"]


def test_j05_forms_with_nul_are_refused_by_their_place(client):
    answer = client.post("/api/v1/models/", {"name": "a\x00b"}, format="multipart")

    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["name.0"])


@pytest.mark.parametrize("value", ["a\x00", "1e999", *also(["\ud800", "NaN", "-0", "²", "9" * 5000, str(2**63)])])
def test_j05_lists_break_by_no_value_of_a_filter(client, schema, value):
    wrong = {}
    for path in lists():
        for parameter in schema["paths"].get(path, {}).get("get", {}).get("parameters", []):
            answer = client.get(path, QUERY_STRING=query_of({parameter["name"]: value}))
            if answer.status_code >= 500 or ("\x00" in value and answer.status_code != 400):
                wrong[f"{path}?{parameter['name']}"] = answer.status_code

    assert wrong == {}


#: What pages read from their addresses.
WORDS = ("q", "page", "state", "sort", "size", "from", "until", "cluster", "user", "version", "preset", "attempt",
         "cell", "set", "clone", "model_version", "day", "than", "since", "person", "role", "by", "next")  # fmt: skip


@pytest.mark.parametrize("value", ["a%00", *also(["1e999", "%ED%A0%80", "%C2%B2", "-0", "9" * 5000, str(2**63)])])
def test_j05_pages_break_by_no_word_in_their_address(as_olga, cluster, value):
    as_olga.raise_request_exception = False
    query = "&".join(f"{word}={value}" for word in WORDS)

    wrong = {}
    for path in plain_routes():
        if not path.startswith("/api/"):
            status = as_olga.get(path, QUERY_STRING=query).status_code
            if status >= 500 or ("%00" in value and status not in {400, 405}):
                wrong[path] = status

    assert wrong == {}


def test_j05_forms_of_pages_refuse_nul(as_olga, cluster):
    as_olga.raise_request_exception = False
    wrong = {
        path: answer.status_code
        for path in plain_routes()
        if not path.startswith("/api/")
        and (answer := as_olga.post(path, {"name": "a\x00", "\x00": "1"})).status_code not in {400, 403, 405}
    }

    assert wrong == {}


numbers = st.integers() | st.floats()
text = st.text(st.characters(codec=None))
values = st.recursive(
    st.none() | st.booleans() | numbers | text, lambda inner: st.lists(inner) | st.dictionaries(text, inner)
)


@limits(max_examples=examples(100))
@given(values)
def test_j05_parser_lets_through_what_every_database_holds(value):
    try:
        parsers.check(value)
    except (ParseError, ValidationError):
        assert not _held(value)
    else:
        assert _held(value)


def _held(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" not in value and not any("\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, bool) or value is None:
        return True
    if isinstance(value, int):
        return -(2**63) <= value < 2**63
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(_held(key) and _held(item) for key, item in value.items())
    return all(_held(item) for item in value)
