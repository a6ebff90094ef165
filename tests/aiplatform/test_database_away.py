"""A database that is away is told as such: come back, nothing of yours is lost."""

import pytest
from django.db import OperationalError


@pytest.mark.django_db
def test_database_that_is_away_answers_503_and_when_to_come_back(as_alice, api, monkeypatch):
    def away(*_args, **_kwargs):
        raise OperationalError("connection refused")

    as_alice.raise_request_exception = False
    api.raise_request_exception = False
    monkeypatch.setattr("django.db.models.sql.compiler.SQLCompiler.execute_sql", away)

    page, answer = as_alice.get("/cluster/"), api.get("/api/v1/nodes/")

    assert [(a.status_code, a["Retry-After"]) for a in (page, answer)] == [(503, "5")] * 2
    assert "does not answer" in page.content.decode()
    assert answer.json()["code"] == "unavailable"
