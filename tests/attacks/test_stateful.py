"""The API walked along its own links: what one answer names goes into the next request, and nothing is our fault.

`AIP_STATEFUL_SECONDS=600 pytest -s -m proof tests/attacks/test_stateful.py` walks for longer.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from typing import Any

import pytest
import requests
from django.db import transaction
from rest_framework.test import APIClient

from tests.attacks.described import query_of
from tests.factories import annotation, models, training
from tests.factories import datasets as data

pytestmark = [pytest.mark.django_db, pytest.mark.proof, pytest.mark.filterwarnings("ignore")]

SECONDS = float(os.environ.get("AIP_STATEFUL_SECONDS", "15"))
LONGEST = 12  # requests of one walk


@pytest.fixture
def everything(olga, cluster, tmp_path, settings):
    """One of most things, so that a walk that starts at a list gets somewhere."""
    settings.DATA_ROOT = tmp_path / "root"
    version = data.version(data.dataset(olga, "streets"))
    annotation.first_task(olga)
    training.training(olga, state="running", data=version)
    models.model_version(olga, tmp_path)


@pytest.fixture
def client(olga):
    made = APIClient(raise_request_exception=False)
    made.force_authenticate(olga)
    return made


def walker(client: APIClient, seen: Counter[tuple[str, int]]) -> type:
    """A state machine over the described API that asks `client`; every walk is rolled back."""
    import schemathesis
    from schemathesis.core import NotSet
    from schemathesis.core.transport import Response

    schema = schemathesis.openapi.from_dict(client.get("/api/schema/?format=json").json())

    class Walk(schema.as_state_machine()):  # type: ignore[misc]  # a base that schemathesis makes
        def setup(self) -> None:
            self.undone = transaction.atomic()
            self.undone.__enter__()

        def teardown(self) -> None:
            transaction.set_rollback(True)
            self.undone.__exit__(None, None, None)

        def call(self, case: Any, **_more: Any) -> Response:
            body = b"" if isinstance(case.body, NotSet) else json.dumps(case.body, default=str).encode()
            path = case.formatted_path
            with transaction.atomic():  # a fault of one request must not spoil the next
                answer = client.generic(
                    case.method, path, body, content_type="application/json", QUERY_STRING=query_of(case.query or {})
                )
            content = b"" if answer.streaming else answer.content
            for close in answer._resource_closers:
                close()
            headers = {name.lower(): [value] for name, value in answer.headers.items()}
            asked = requests.Request(case.method, f"http://testserver{path}").prepare()
            return Response(answer.status_code, headers, content, asked, 0.0, False)

        def validate_response(self, response: Response, case: Any, *_args: Any, **_more: Any) -> None:
            label = case.operation.label
            seen[label, response.status_code] += 1
            given = (case.path_parameters, case.query, case.body)
            assert response.status_code < 500 or response.status_code == 503, f"{label} {given!r}"[:600]

    return Walk


def test_j05_api_walks_never_end_in_a_fault(client, everything):
    from hypothesis import HealthCheck, Phase, seed
    from hypothesis import settings as limits
    from hypothesis.stateful import run_state_machine_as_test

    seen: Counter[tuple[str, int]] = Counter()
    machine = walker(client, seen)
    few = limits(
        max_examples=5, stateful_step_count=LONGEST, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    until, walks = time.monotonic() + SECONDS, 0

    while walks == 0 or time.monotonic() < until:
        walks += 1
        run_state_machine_as_test(seed(walks)(machine), settings=few)

    good = {label for label, status in seen if status < 300}
    print(f"{sum(seen.values())} requests in {5 * walks} walks, {len({label for label, _status in seen})} operations, "
          f"{len(good)} of them with success")  # fmt: skip
    assert len(good) >= 5
