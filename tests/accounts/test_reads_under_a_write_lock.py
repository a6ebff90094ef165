"""Reads answer while another process holds the write lock of SQLite."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from accounts.models import ApiToken, AuditEntry, UserSession
from accounts.services import tokens
from accounts.tasks import write_deferred_audit_entries

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def locked():
    """Hold the write lock, as a long migration or import does."""
    if connection.vendor != "sqlite" or "memory" in str(connection.settings_dict["NAME"]):
        pytest.skip("the database has no single write lock")
    connection.ensure_connection()
    with closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield other
        other.execute("ROLLBACK")


def test_request_with_a_token_is_answered_under_a_write_lock(alice, request):
    _token, secret = tokens.issue(user=alice, name="script")
    Client().get("/api/v1/me/")  # imports
    request.getfixturevalue("locked")
    began = time.monotonic()

    answer = Client(headers={"Authorization": f"Bearer {secret}"}).get("/api/v1/me/")

    assert answer.status_code == 200
    assert time.monotonic() - began < 1  # a writer may wait 20 s
    assert ApiToken.objects.get().last_used_at is None


def test_use_of_a_token_is_stamped_where_no_lock_is_held(alice):
    _token, secret = tokens.issue(user=alice, name="script")

    assert tokens.find(secret) is not None

    assert ApiToken.objects.get().last_used_at is not None
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA busy_timeout")
            assert cursor.fetchone()[0] > 0  # later writes wait again


def test_page_of_a_session_is_answered_under_a_write_lock(alice, request):
    browser = Client()
    browser.force_login(alice)
    session = browser.session
    session["seen"] = 0.0
    session.save()
    UserSession.objects.filter(session_key=session.session_key).update(seen_at="2020-01-01T00:00:00Z")
    request.getfixturevalue("locked")
    began = time.monotonic()

    answer = browser.get("/api/v1/me/")

    assert answer.status_code == 200
    assert time.monotonic() - began < 1


@pytest.mark.parametrize(
    ("address", "status", "code"),
    [
        ("/people/", 403, "not_allowed"),
        ("/api/v1/users/", 403, "not_allowed"),
        ("/api/v1/datasets/4711/", 404, "not_found"),
    ],
)
def test_refused_read_is_answered_under_a_write_lock_and_recorded_later(alice, request, sent, address, status, code):
    browser = Client()
    browser.force_login(alice)
    browser.get(address)  # imports
    before = AuditEntry.objects.count()
    sent.clear()
    locked = request.getfixturevalue("locked")
    began = time.monotonic()

    answer = browser.get(address)

    took = time.monotonic() - began
    (kept,) = (Path(settings.DATA_ROOT) / "spool" / "audit").glob("*.json")
    at = json.loads(kept.read_text())["at"]
    content = kept.read_bytes()
    assert [kwargs for name, kwargs in sent if name == "accounts.write_deferred_audit_entries"] == [{}]
    assert answer.status_code == status
    assert took < 1
    assert AuditEntry.objects.count() == before

    locked.execute("ROLLBACK")
    write_deferred_audit_entries()
    assert not kept.exists()
    kept.write_bytes(content)
    write_deferred_audit_entries()  # killed before the file was removed
    assert not kept.exists()
    locked.execute("BEGIN IMMEDIATE")

    entry = AuditEntry.objects.first()
    assert AuditEntry.objects.count() == before + 1
    assert (entry.actor, entry.verb, entry.target, entry.facts["code"]) == ("alice", "denied", address, code)
    assert entry.at.isoformat() == at
