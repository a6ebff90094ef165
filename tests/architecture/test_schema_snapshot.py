"""The API is what aiplatform/docs/api/openapi.json says; what breaks callers is declared in breaking.toml."""

from __future__ import annotations

import copy
import json
import os
import tomllib
from functools import cache

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from packaging.version import Version

from aiplatform import __version__
from tests.architecture.code import ROOT
from tests.architecture.schema_changes import breaking, contract
from tests.cases import case_table

FOLDER = ROOT / "aiplatform/docs/api"
SNAPSHOT, DECLARED = FOLDER / "openapi.json", FOLDER / "breaking.toml"
REFRESH = "AIP_UPDATE=1 python3 manage.py test -- tests/architecture/test_schema_snapshot.py"


@cache
def today() -> dict:
    with GENERATOR_STATS.silence():
        described = SchemaGenerator().get_schema(request=None, public=True)
    return json.loads(json.dumps(contract(described), default=str))


def test_every_operation_describes_its_errors():
    operations = [one for methods in today()["paths"].values() for one in methods.values()]

    without = [one for one in operations if "default" not in one["responses"]]

    assert (without, len(operations) > 400) == ([], True)
    assert {"code", "detail", "status"} <= today()["components"]["schemas"]["Problem"]["properties"].keys()


@case_table(
    ("component", "field", "types"),
    [
        ("JobOut", "progress", ["number", "null"]),  # a property with a type hint
        ("CommandOut", "ended_at", ["string", "null"]),  # a column of another model
        ("ModelTaskOut", "phase_done", ["integer", "null"]),
        ("PaginatedJobOutList", "next", ["string", "null"]),
        ("JobOut", "id", "integer"),
        ("JobOut", "name", "string"),
    ],
)
def test_values_that_may_be_null_are_described_so(component, field, types):
    assert today()["components"]["schemas"][component]["properties"][field]["type"] == types


def declared() -> list[dict]:
    return tomllib.loads(DECLARED.read_text()).get("change", [])


def test_schema_breaks_no_caller_undeclared_and_matches_its_snapshot():
    """Refresh the snapshot with AIP_UPDATE=1; a breaking change is declared first."""
    now, before = today(), json.loads(SNAPSHOT.read_text())
    undeclared = [change for change in breaking(before, now) if change not in {row["what"] for row in declared()}]

    assert undeclared == [], (
        f"These break callers of the API. Keep the old way working, or declare each in {DECLARED.relative_to(ROOT)}"
        f" (see stability.md beside it), then refresh: {REFRESH}"
    )
    if os.environ.get("AIP_UPDATE"):
        SNAPSHOT.write_text(json.dumps(now, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    else:
        assert now == before, f"The API grew. Refresh its snapshot and commit it: {REFRESH}"


def test_declared_changes_name_the_version_and_the_new_way():
    for row in declared():
        assert set(row) == {"what", "instead", "version"}, row
        assert all(isinstance(value, str) and value.strip() for value in row.values()), row
        assert Version(row["version"]) >= Version(__version__), row


@pytest.mark.parametrize("what", ["`limit` over 200", "/predict: query words"])
def test_values_that_are_refused_now_are_declared_though_no_description_shows_them(what):
    assert [row["instead"] for row in declared() if what in row["what"]]


@pytest.fixture
def api():
    """One path, one body sent, one read."""
    sent = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "kind": {"type": "string", "enum": ["a", "b"]},
            "size": {"type": ["integer", "null"]},
            "rows": {"type": "array", "items": {"type": "integer"}},
        },
    }
    read = {
        "type": "object",
        "required": ["id"],
        "properties": {
            "id": {"type": "integer"},
            "at": {"type": "string", "format": "date-time"},
            "state": {"oneOf": [{"$ref": "#/components/schemas/State"}, {"type": "null"}]},
            "inner": {"$ref": "#/components/schemas/Out"},
        },
    }
    return {
        "paths": {
            "/x/": {
                "post": {
                    "description": "Make one.",
                    "parameters": [{"in": "query", "name": "q", "schema": {"type": "string"}}],
                    "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/In"}}}},
                    "responses": {
                        "201": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Out"}}}}
                    },
                }
            }
        },
        "components": {"schemas": {"In": sent, "Out": read, "State": {"type": "string", "enum": ["on", "off"]}}},
    }


def _sent(api):
    return api["components"]["schemas"]["In"]


def _read(api):
    return api["components"]["schemas"]["Out"]


def _post(api):
    return api["paths"]["/x/"]["post"]


BREAKING = [
    (lambda a: a["paths"].clear(), ["POST /x/: removed"]),
    (lambda a: _post(a)["parameters"].clear(), ["POST /x/ query parameter q: removed"]),
    (lambda a: _post(a)["parameters"][0].update(required=True), ["POST /x/ query parameter q: required now"]),
    (lambda a: _post(a)["responses"].clear(), ["POST /x/ answer 201: removed"]),
    (lambda a: _post(a)["requestBody"]["content"].clear(), ["POST /x/ body: no longer application/json"]),
    (lambda a: _sent(a)["properties"].pop("size"), ["In.size: removed"]),
    (lambda a: _sent(a)["required"].append("kind"), ["In.kind: required now"]),
    (lambda a: _sent(a)["properties"].update(new={}) or _sent(a)["required"].append("new"), ["In.new: required now"]),
    (lambda a: _sent(a)["properties"]["kind"]["enum"].remove("b"), ["In.kind: no longer 'b'"]),
    (lambda a: _sent(a)["properties"]["name"].update(enum=["x"]), ["In.name: only some values now"]),
    (lambda a: _sent(a)["properties"]["size"].update(type="integer"), ["In.size: was integer or null, is integer"]),
    (lambda a: _sent(a)["properties"]["rows"]["items"].update(type="string"), ["In.rows[]: was integer, is string"]),
    (lambda a: _read(a)["properties"].pop("id"), ["Out.id: removed"]),
    (lambda a: _read(a)["required"].remove("id"), ["Out.id: may be missing now"]),
    (lambda a: _read(a)["properties"]["at"].update(type=["string", "null"]), ["Out.at: was string, is null or string"]),
    (lambda a: _read(a)["properties"]["id"].update(type="number"), ["Out.id: was integer, is number"]),
    (lambda a: _read(a)["properties"]["at"].update(format="date"), ["Out.at: was date-time, is date"]),
    (lambda a: a["components"]["schemas"]["State"]["enum"].remove("off"), ["Out.state: no longer 'off'"]),
]  # fmt: skip


@case_table(("change", "said"), BREAKING, ids=[said[0] for _, said in BREAKING])
def test_breaking_names_what_breaks_a_caller(api, change, said):
    new = copy.deepcopy(api)
    change(new)

    assert breaking(contract(api), contract(new)) == said


def _renamed(api):
    schemas = api["components"]["schemas"]
    schemas["Answer"] = schemas.pop("Out")
    content = _post(api)["responses"]["201"]["content"]["application/json"]
    content["schema"] = schemas["Answer"]["properties"]["inner"] = {"$ref": "#/components/schemas/Answer"}


@case_table(
    "change",
    [
        lambda a: a["paths"].update({"/y/": {"get": {}}}),
        lambda a: _post(a)["parameters"].append({"in": "query", "name": "r", "schema": {}}),
        lambda a: _sent(a)["properties"].update(new={"type": "string"}),
        lambda a: _sent(a)["required"].clear(),
        lambda a: _sent(a)["properties"]["kind"]["enum"].append("c"),
        lambda a: _sent(a)["properties"]["size"].update(type=["number", "null"]),
        lambda a: _read(a)["properties"].update(new={"type": "string"}),
        lambda a: _read(a)["required"].append("at"),
        lambda a: a["components"]["schemas"]["State"]["enum"].append("broken"),
        _renamed,
    ],
    ids=[
        "path", "parameter", "optional field", "no longer required", "value taken", "wider type", "field read",
        "always there now", "value read", "renamed component",
    ],
)  # fmt: skip
def test_breaking_lets_an_api_grow(api, change):
    new = copy.deepcopy(api)
    change(new)

    assert breaking(contract(api), contract(new)) == []
    assert contract(new) != contract(api)


def test_contract_forgets_words_for_people(api):
    new = copy.deepcopy(api)
    _post(new)["description"] = "Make another."
    _sent(new)["properties"]["description"] = {"type": "string"}  # a field of that name is no word

    assert "description" not in _post(contract(new))
    assert "description" in _sent(contract(new))["properties"]
