"""`aip secret`: values come by standard input or a prompt, and new ones replace old ones."""

from __future__ import annotations

import io

import pytest

pytestmark = pytest.mark.sockets("a platform's double")


def test_secret_command_stores_a_value_that_no_argument_holds(aip, platform, capsys, monkeypatch):
    rows = [{"id": 4, "name": "HF_TOKEN", "changed_at": None, "used_at": None, "note": ""}]
    platform.answers("GET /api/v1/secrets/", {"next": None, "results": rows})
    platform.answers("POST /api/v1/secrets/", {"id": 5, "name": "KEY"}, status=201)
    platform.answers("PATCH /api/v1/secrets/4/", rows[0])

    monkeypatch.setattr("sys.stdin", io.StringIO("first line\nlast line\n"))
    assert aip("secret", "set", "KEY", "--note", "hub") == 0
    monkeypatch.setattr("sys.stdin", io.StringIO("new value"))
    assert aip("secret", "set", "HF_TOKEN") == 0
    assert aip("secret", "delete", "OTHER") == 5

    [made] = platform.asked("POST /api/v1/secrets/")
    assert made.json() == {"name": "KEY", "value": "first line\nlast line", "note": "hub"}
    assert platform.asked("PATCH /api/v1/secrets/4/")[0].json() == {"value": "new value"}
    assert "value" not in capsys.readouterr().out
