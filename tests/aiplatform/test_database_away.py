"""A database that is away is told as such: come back, nothing of yours is lost."""

import pytest
from django.db import OperationalError, connection


@pytest.mark.django_db
def test_database_that_is_away_answers_503_and_when_to_come_back(as_alice, api, monkeypatch):
    def away(*_args, **_kwargs):
        raise OperationalError("connection refused")

    as_alice.raise_request_exception = False
    api.raise_request_exception = False
    monkeypatch.setattr("django.db.models.sql.compiler.SQLCompiler.execute_sql", away)

    page, answer = as_alice.get("/cluster/"), api.get("/api/v1/nodes/")

    assert [(a.status_code, a["Retry-After"]) for a in (page, answer)] == [(503, "5")] * 2
    assert "does not respond" in page.content.decode()
    assert answer.json()["code"] == "unavailable"


@pytest.mark.django_db
def test_health_is_asked_of_the_database_and_not_of_an_open_connection(client, monkeypatch):
    def away(*_args, **_kwargs):
        raise OperationalError("server closed the connection unexpectedly")

    assert client.get("/healthz").status_code == 200  # the connection is open from here on
    client.raise_request_exception = False
    monkeypatch.setattr(connection, "cursor", away)

    assert client.get("/healthz").status_code == 503
