"""What the API refuses it says in the caller's language: its own words about a request, an archive, a model."""

from __future__ import annotations

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError
from rest_framework.test import APIClient

from tests.factories import datasets as data

pytestmark = pytest.mark.django_db
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def told(answer) -> list[str]:
    """Every sentence of a refusal."""
    assert answer.status_code >= 400
    body = answer.json()
    return [body["detail"], *(sentence for said in body.get("errors", {}).values() for sentence in said)]


@pytest.fixture
def ask(alice, olga):
    """Calls of the API by Alice, or another, in a language."""

    def made(method, path, sent, by=alice, language="zh-hans", **more):
        client = APIClient(headers={"accept-language": language})
        client.force_login(by)
        client.raise_request_exception = False
        return getattr(client, method)(f"/api/v1/{path}", sent, **({"format": "json"} | more))

    return made


def test_unknown_fields_and_wrong_values_are_told_in_the_callers_language(ask):
    sent = {"time_zone": "Middle/Earth", "is_superuser": True}

    chinese, english = ask("patch", "me/", sent), ask("patch", "me/", sent, language="en")

    assert set(chinese.json()["errors"]) == {"time_zone", "is_superuser"}
    assert len(told(chinese)) == 3
    assert all(map(CHINESE.search, told(chinese)))
    assert told(english)[0] == "Some values are invalid."
    assert english.json()["errors"]["is_superuser"] == ["This cannot be set here."]


def test_empty_change_missing_preset_and_doubled_source_are_told_in_chinese(ask, alice, olga):
    dataset = data.dataset(alice)

    refused = (
        ask("patch", f"users/{alice.pk}/", {}, by=olga),
        ask("get", "training/presets/nonesuch/", {}),
        ask("post", f"datasets/{dataset.pk}/imports/", {}),
    )

    assert [[bool(CHINESE.search(said)) for said in told(answer)] for answer in refused] == [
        [True, True],
        [True],
        [True] * 2,
    ]


@pytest.mark.parametrize(
    ("name", "content"), [("m.pkl", b"\x80\x04."), ("m.onnx", b""), ("m.zip", b"PK\x03\x04 broken")]
)
def test_model_that_is_refused_is_told_why_in_chinese(ask, name, content):
    sent = {"name": "cells", "file": SimpleUploadedFile(name, content)}

    answer = ask("post", "models/", sent, format="multipart")

    assert all(map(CHINESE.search, told(answer))), told(answer)


def test_database_that_is_away_is_told_in_chinese(ask, alice, monkeypatch):
    def away(*_args, **_kwargs):
        raise OperationalError("connection refused")

    client = APIClient(headers={"accept-language": "zh-hans"})
    client.force_authenticate(alice)
    client.raise_request_exception = False
    monkeypatch.setattr("django.db.models.sql.compiler.SQLCompiler.execute_sql", away)

    answer = client.get("/api/v1/nodes/")

    assert answer.status_code == 503
    assert CHINESE.search(told(answer)[0])
