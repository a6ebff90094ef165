"""A full disk is told by one word, whoever meets it first: 507, with what to do."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3

import psycopg
import pytest
from django.db import DataError, OperationalError

from aiplatform.cli import doctor
from aiplatform.lib import disk


def full_file(*_args, **_kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_quota(*_args, **_kwargs):
    raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))


def full_sqlite(*_args, **_kwargs):
    """What Django raises, from what SQLite raises."""
    told = sqlite3.OperationalError("database or disk is full")
    told.sqlite_errorcode = sqlite3.SQLITE_FULL
    raise OperationalError(*told.args) from told


def full_postgresql(*_args, **_kwargs):
    told = psycopg.errors.DiskFull("could not extend file: No space left on device")
    raise OperationalError(*told.args) from told


FULL = [full_file, full_quota, full_sqlite, full_postgresql]


@pytest.mark.parametrize("meet", FULL)
def test_disk_full_is_known_by_whoever_meets_it(meet):
    with pytest.raises((OSError, OperationalError)) as met:
        meet()

    assert disk.is_full(met.value)


@pytest.mark.parametrize("other", [OSError(errno.EACCES, "no"), OperationalError("locked"), DataError("x"), None])
def test_disk_full_is_no_other_error(other):
    assert not disk.is_full(other)


@pytest.mark.django_db
@pytest.mark.parametrize("meet", FULL)
def test_every_write_on_a_full_disk_answers_507_and_what_to_do(as_alice, api, monkeypatch, meet):
    as_alice.raise_request_exception = api.raise_request_exception = False
    for kind in ("Insert", "Update"):
        monkeypatch.setattr(f"django.db.models.sql.compiler.SQL{kind}Compiler.execute_sql", meet)

    page = as_alice.post("/account/tokens/", {"name": "laptop", "scope": "read", "days": "30"})
    answer = api.patch("/api/v1/me/", {"nickname": "Alice II"}, format="json")

    assert (page.status_code, answer.status_code) == (507, 507)
    assert "disk is full" in page.content.decode()
    assert (answer.json()["code"], answer.json()["detail"]) == ("disk_full", disk.sentence())


@pytest.mark.django_db
def test_pages_say_that_the_disk_is_full_until_it_is_not(as_alice, monkeypatch):
    calm = as_alice.get("/").content.decode()
    monkeypatch.setattr(disk, "has_no_room", lambda _path: True)
    full = as_alice.get("/").content.decode()

    assert ("disk is full" in calm, "disk is full" in full) == (False, True)


def test_doctor_says_that_the_disk_is_full(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(100 << 30, 100 << 30, 0))

    found = [(finding.level, "is full" in finding.text) for finding in doctor._disk()]

    assert (doctor.FAIL, True) in found
