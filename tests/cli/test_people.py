"""`aip people`, `aip audit`, `aip share`, and a second factor at `aip login`."""

from __future__ import annotations

from io import StringIO

import pytest

from aiplatform.client.main import main

pytestmark = pytest.mark.sockets("a platform's double")


def rows(*given):
    return {"next": None, "results": list(given)}


def test_people_command_makes_an_account_and_prints_its_password_once(aip, platform, capsys):
    platform.answers("GET /api/v1/roles/", rows({"id": 2, "name": "User"}))
    platform.answers("GET /api/v1/clusters/", rows({"id": 5, "name": "lab"}))
    platform.answers("POST /api/v1/users/", {"id": 9, "username": "rosa", "password": "abcde-fghij"}, status=201)

    assert aip("people", "add", "rosa", "--role", "User", "--cluster", "lab") == 0
    assert aip("people", "add", "rosa", "--role", "Emperor") == 5

    [request] = platform.asked("POST /api/v1/users/")
    expected = {"username": "rosa", "nickname": "rosa", "email": "", "roles": [2], "groups": [], "clusters": [5]}
    assert request.json() == expected
    assert capsys.readouterr().out == "abcde-fghij\n"


def test_people_command_disables_an_account_by_its_exact_name(aip, platform, capsys):
    platform.answers("GET /api/v1/users/", rows({"id": 8, "username": "rosalind"}, {"id": 9, "username": "rosa"}))
    platform.answers("PATCH /api/v1/users/9/", {"id": 9})

    assert aip("people", "disable", "rosa") == 0

    assert platform.asked("PATCH /api/v1/users/9/")[0].json() == {"is_active": False}
    assert "rosa is disabled." in capsys.readouterr().err


def test_audit_command_searches_the_trail(aip, platform, capsys):
    entry = {"at": None, "actor": "olga", "behind": "", "verb": "role_made", "target": "viewer", "address": ""}
    platform.answers("GET /api/v1/audit/", rows(entry))

    assert aip("audit", "list", "--verb", "role_made") == 0

    assert platform.asked("GET /api/v1/audit/")[0].query == {"verb": "role_made"}
    assert "viewer" in capsys.readouterr().out


def test_share_command_shares_a_dataset_by_name_and_takes_it_back(aip, platform, capsys):
    platform.answers("GET /api/v1/datasets/", rows({"id": 3, "name": "cells"}))
    platform.answers("PUT /api/v1/shares/dataset/3/", [{"name": "Bob", "level": "use"}])

    assert aip("share", "dataset", "cells", "--with", "bob", "--level", "use") == 0
    assert "Bob" in capsys.readouterr().out
    assert aip("share", "dataset", "3", "--with", "bob", "--level", "none") == 0

    sent = [request.json() for request in platform.asked("PUT /api/v1/shares/dataset/3/")]
    assert sent == [{"person": "bob", "level": "use"}, {"person": "bob", "level": None}]


def test_login_sends_the_code_of_a_second_factor(platform, home, monkeypatch):
    monkeypatch.setattr("sys.stdin", StringIO("correct horse\n"))
    platform.answers("POST /api/v1/auth/token/", {"token": "aip_x", "prefix": "aip_x"}, status=201)
    platform.answers("GET /api/v1/me/", {"username": "alice"})

    given = ["login", platform.url, "--username", "alice", "--password-stdin", "--code", "123456"]

    assert main(given) == 0
    assert platform.asked("POST /api/v1/auth/token/")[0].json()["code"] == "123456"
