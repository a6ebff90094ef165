"""The API as its own description says it: whatever is sent, no answer is a fault of ours."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.attacks.described import query_of

pytestmark = [pytest.mark.django_db, pytest.mark.filterwarnings("ignore")]

EXAMPLES = int(os.environ.get("AIP_SCHEMA_EXAMPLES", "2"))
BODIES = {  # sent to every operation that takes JSON, beside what its description leads to
    "100,000 deep": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "NUL": b'{"name": "a\\u0000b", "params": {"x": "\\u0000"}}',
    "half a pair": b'{"name": "a\\ud800b", "params": {"\\udfff": 1}}',
    "NaN": b'{"name": NaN, "cpus": Infinity}',
    "a huge number": b'{"version": 1' + b"0" * 5000 + b"}",
    "no UTF-8": b'{"name": "\xff"}',
    "a list": b"[[]]",
    "a word": b'"x"',
}

PARSED = [name for name in BODIES if name not in ("a list", "a word")]
SHORT = "AIP_LONG" not in os.environ


@pytest.fixture
def client(olga, cluster):
    made = APIClient(raise_request_exception=False)
    made.force_authenticate(olga)
    return made


@pytest.fixture
def schema(client):
    return client.get("/api/schema/?format=json").json()


@pytest.fixture
def operations(schema):
    import schemathesis

    return [found.ok() for found in schemathesis.openapi.from_dict(schema).get_all_operations()]


def sent(client: APIClient, case: Any) -> int:
    """Status of the answer to a generated case."""
    from schemathesis.core import NotSet

    extra = {"QUERY_STRING": query_of(case.query or {})}
    body = b"" if isinstance(case.body, NotSet) else json.dumps(case.body, default=str).encode()
    path = case.formatted_path
    return client.generic(case.method, path, body, content_type="application/json", **extra).status_code


@pytest.mark.proof
def test_api_answers_without_a_fault_what_its_description_allows(client, operations):
    from hypothesis import HealthCheck, Phase, given
    from hypothesis import settings as limits

    faults: dict[str, str] = {}
    few = limits(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    def ask(case):
        if sent(client, case) >= 500:
            given_to_it = (case.path_parameters, case.query, case.body)
            faults.setdefault(f"{case.operation.method.upper()} {case.operation.path}", repr(given_to_it)[:300])

    for operation in operations:
        few(given(case=operation.as_strategy())(ask))()

    assert len(operations) > 80
    assert faults == {}


def test_j05_api_takes_what_no_database_stores_for_a_mistake_of_the_request(client, schema):
    """The short form sends one of the bodies that are refused by the one parser, the next operation the next one."""
    wrong, requests = {}, 0
    for route, methods in schema["paths"].items():
        path = re.sub(r"\{[^}]+\}", "1", route)
        for method in {"post", "put", "patch"} & methods.keys():
            takes_a_body = "requestBody" in methods[method]
            parsed = PARSED[requests % len(PARSED) :][:1] if SHORT else PARSED
            for name in (*parsed, "a list", "a word"):
                body = BODIES[name]
                status = client.generic(method.upper(), path, body, content_type="application/json").status_code
                requests += 1
                never_stored = takes_a_body and name in {"100,000 deep", "NUL", "half a pair"}
                if status >= 500 or (never_stored and status not in {400, 401, 403, 404, 405}):
                    wrong[f"{method.upper()} {path} {name}"] = status

    assert wrong == {}
    assert requests > 80 * (3 if SHORT else len(BODIES))
