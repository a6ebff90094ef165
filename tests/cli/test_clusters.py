"""`aip clusters`, `aip extend`, `aip requests`."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.sockets("a platform's double")


def test_clusters_command_shows_cards_and_makes_one_current_by_name(aip, platform, capsys):
    quota = {"kind": "gpu", "guaranteed": 2, "borrows": True, "per_user": None}
    row = {"id": 7, "name": "lab", "devices": [quota], "max_runtime_s": 7200.0}
    platform.answers("GET /api/v1/clusters/", {"next": None, "results": [row]})
    platform.answers("POST /api/v1/clusters/7/current/", row)

    assert aip("clusters", "list") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["7", "lab", "2", "gpu", "+", "idle", "ones", "2", "h"]
    assert aip("clusters", "use", "lab") == 0
    assert "New jobs use lab." in capsys.readouterr().err


def test_extend_command_requests_more_time_and_grants_it(aip, platform, capsys):
    platform.answers("POST /api/v1/jobs/3/extend/", {"id": 9}, status=201)
    platform.answers("POST /api/v1/time-requests/9/answer/", {"id": 9, "answer": "granted"})

    assert aip("extend", "3", "--hours", "5", "--reason", "two epochs") == 0
    assert aip("requests", "grant", "9", "--hours", "2", "--word", "until six") == 0
    assert aip("extend", "3", "--hours", "5") == 2

    assert platform.asked("POST /api/v1/jobs/3/extend/")[0].json() == {"hours": 5.0, "reason": "two epochs"}
    answered = platform.asked("POST /api/v1/time-requests/9/answer/")[0].json()
    assert answered == {"grant": True, "hours": 2.0, "word": "until six"}
    assert "Request 9: granted." in capsys.readouterr().err
