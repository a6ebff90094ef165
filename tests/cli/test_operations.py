"""`aip usage`, `aip alarms`, `aip notifications`."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.sockets("a platform's double")


def test_usage_command_prints_rows_and_their_sum(aip, platform, capsys):
    row = {"name": "alice", "gpu_hours": 4.5, "cpu_hours": 9.0, "jobs": 2, "wait_p50_s": 60.0, "wait_p95_s": None}
    platform.answers("GET /api/v1/usage/", {"by": "group", "rows": [row], "total": {**row, "name": "All"}})

    assert aip("usage", "--by", "group", "--from", "2026-03-01") == 0

    [request] = platform.asked("GET /api/v1/usage/")
    assert request.query == {"by": "group", "from": "2026-03-01"}
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["alice", "4.5", "9.0", "2", "0:01:00"]
    assert lines[2].startswith("All")


def test_alarms_and_notifications_commands_list_silence_and_mark(aip, platform, capsys):
    alarm = {"id": 3, "severity": "critical", "sentence": "n1 is silent.", "seen_at": None, "ended_at": None}
    platform.answers("GET /api/v1/alarms/", {"next": None, "results": [alarm]})
    platform.answers("POST /api/v1/alarms/3/silence/", {"until": "2026-03-01T00:00:00Z"}, status=201)
    platform.answers("POST /api/v1/notifications/read-all/", {"marked": 2})

    assert aip("alarms", "list") == 0
    assert "n1 is silent." in capsys.readouterr().out
    assert aip("alarms", "silence", "3", "--hours", "2") == 0
    assert platform.asked("POST /api/v1/alarms/3/silence/")[0].json() == {"hours": 2.0}
    assert aip("notifications", "read") == 0
    assert "2 marked as read." in capsys.readouterr().err


def test_ports_commands_publish_open_and_withdraw(aip, platform, capsys):
    row = {
        "id": 1,
        "job": 3,
        "job_name": "dash",
        "name": "web",
        "port": 40000,
        "owner": "alice",
        "address": "http://x/",
    }
    platform.answers("POST /api/v1/jobs/3/ports/", row, status=201)
    platform.answers("GET /api/v1/jobs/3/ports/", [row])
    platform.answers("POST /api/v1/jobs/3/ports/web/open/", {"url": "http://x/_enter?ticket=t", "expires_in_s": 30})
    platform.answers("DELETE /api/v1/jobs/3/ports/web/", None, status=204)
    platform.answers("POST /api/v1/jobs/3/board/", {"id": 8}, status=201)

    assert aip("ports", "publish", "3", "40000", "--name", "web") == 0
    assert aip("ports", "list", "3") == 0
    assert aip("ports", "open", "3", "web") == 0
    assert aip("ports", "withdraw", "3", "web") == 0
    assert aip("ports", "board", "3") == 0

    assert platform.asked("POST /api/v1/jobs/3/ports/")[0].json() == {"port": 40000, "name": "web"}
    said = capsys.readouterr()
    assert "http://x/_enter?ticket=t" in said.out
    assert "aip ports open 3 web" in said.err
    assert "aip ports open 8 tensorboard" in said.err
