"""A full disk is told by one word, whoever meets it first: 507, with what to do."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
from types import SimpleNamespace

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, OperationalError

from aiplatform import env
from aiplatform.cli import doctor, schema, up
from aiplatform.lib import disk
from aiplatform.management.commands import prepare


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

    assert ("disk of the platform is full" in calm, "disk of the platform is full" in full) == (False, True)


def test_doctor_says_that_the_disk_is_full(monkeypatch):
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _path: shutil._ntuple_diskusage(100 << 30, 100 << 30, 0))

    found = [(finding.level, "is full" in finding.text) for finding in doctor._disk()]

    assert (doctor.FAIL, True) in found


@pytest.mark.parametrize("meet", FULL)
def test_disk_full_while_the_database_is_prepared_says_what_to_do(monkeypatch, meet):
    monkeypatch.setattr(schema, "bring_up_to_date", meet)
    elsewhere = SimpleNamespace(vendor="postgresql") if meet is full_postgresql else SimpleNamespace(vendor="sqlite")
    monkeypatch.setattr(prepare, "connection", elsewhere)

    with pytest.raises(CommandError) as told:
        call_command("prepare", skip_checks=True)

    where = "database server" if meet is full_postgresql else str(env.DATA_ROOT)
    assert f"The disk of {'the ' if meet is full_postgresql else ''}{where} is full" in str(told.value)
    assert "Free space there" in str(told.value)


def test_other_errors_while_the_database_is_prepared_stay_as_they_are(monkeypatch):
    def locked(_report: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr(schema, "bring_up_to_date", locked)

    with pytest.raises(OperationalError):
        call_command("prepare", skip_checks=True)


@pytest.mark.parametrize("where", ["only_one", "_up"])
def test_up_on_a_full_disk_says_what_to_do(monkeypatch, capsys, where):
    monkeypatch.setattr(up, "only_one", full_file if where == "only_one" else contextlib.nullcontext)
    monkeypatch.setattr(up, "_up", full_file)
    for name in ("AIP_HOST", "AIP_PORT"):
        monkeypatch.setenv(name, "")  # `up` sets them

    assert up.main([]) == 1

    assert f"The disk of {env.DATA_ROOT} is full" in capsys.readouterr().out
