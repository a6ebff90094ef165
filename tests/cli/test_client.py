"""The client's manners: exit codes, sentences, secrets, streams."""

from __future__ import annotations

import io
import json
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aiplatform.client import config, output
from aiplatform.client.main import main

pytestmark = pytest.mark.sockets("a platform's double")


def test_client_needs_nothing_but_the_standard_library():
    code = (
        "import sys, aiplatform.client.main;"
        "bad = {m.split('.')[0] for m in sys.modules} & {'django', 'rest_framework', 'celery', 'torch'};"
        "sys.exit(repr(bad) if bad else 0)"
    )

    ended = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_client_answers_wrong_usage_with_a_sentence_and_exit_2(home, capsys):
    assert main(["train", "submit"]) == 2
    assert main(["nonsense"]) == 2

    said = capsys.readouterr()
    assert said.out == ""
    assert "aip train submit --help" in said.err


def test_client_answers_no_platform_with_a_sentence_and_exit_1(home, monkeypatch, capsys):
    monkeypatch.setenv("AIP_URL", "http://127.0.0.1:9")

    assert main(["train", "list"]) == 1
    assert "No connection to http://127.0.0.1:9" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("status", "exit_code"), [(400, 2), (401, 4), (403, 1), (404, 5), (409, 1), (422, 2), (500, 1), (503, 1)]
)
def test_client_gives_refusals_their_own_exit_codes(aip, platform, capsys, status, exit_code):
    problem = {"title": "Refused", "detail": "9 GPUs asked, lab has 4.", "code": "quota_exceeded"}
    platform.answers("GET /api/v1/training/jobs/", problem, status=status)

    assert aip("train", "list") == exit_code
    said = capsys.readouterr()
    assert said.out == ""
    assert "9 GPUs asked, lab has 4." in said.err


def test_client_prints_a_line_for_each_wrong_field(aip, platform, capsys):
    errors = {"name": ["Letters, digits and underscore only."], "gpus_per_node": ["At most 8."]}
    platform.answers("GET /api/v1/jobs/3/", {"detail": "Some values are invalid.", "errors": errors}, status=400)

    aip("jobs", "show", "3")

    assert capsys.readouterr().err.splitlines() == [
        "Some values are invalid.",
        "  name: Letters, digits and underscore only.",
        "  gpus_per_node: At most 8.",
    ]


def test_login_keeps_the_token_in_a_private_file(platform, home, monkeypatch, capsys):
    platform.answers("POST /api/v1/auth/token/", {"token": "aip_secret"})
    platform.answers("GET /api/v1/me/", {"username": "alice"})
    monkeypatch.setattr(sys, "stdin", io.StringIO("my password\n"))

    code = main(["login", platform.url, "--username", "alice", "--password-stdin"])

    asked = platform.asked("POST /api/v1/auth/token/")[0].json()
    assert (code, asked["username"], asked["password"]) == (0, "alice", "my password")
    assert platform.asked("GET /api/v1/me/")[0].headers["authorization"] == "Bearer aip_secret"
    assert stat.S_IMODE((home / "config.json").stat().st_mode) == 0o600
    assert "aip_secret" not in capsys.readouterr().err


def test_client_config_sends_a_token_only_to_its_own_address(home):
    config.save("https://ai.example.org", "aip_secret")

    assert config.load().token == "aip_secret"
    assert config.load("https://elsewhere.example.org").token == ""


def test_login_saves_nothing_for_a_wrong_password(platform, home, monkeypatch, capsys):
    platform.answers("POST /api/v1/auth/token/", {"detail": "Wrong name or password."}, status=401)
    monkeypatch.setattr(sys, "stdin", io.StringIO("guess\n"))

    assert main(["login", platform.url, "--username", "alice", "--password-stdin"]) == 4
    assert not (home / "config.json").exists()


def test_client_lists_follow_the_next_link_and_print_one_json_value(aip, platform, capsys):
    def page(request):
        if request.query.get("cursor") == "b":
            return 200, {"next": None, "results": [{"id": 1}]}
        following = f"{platform.url}/api/v1/jobs/?cursor=b"
        return 200, {"next": following, "results": [{"id": 3}, {"id": 2}]}

    platform.routes["GET /api/v1/jobs/"] = page

    assert aip("jobs", "list", "--json") == 0
    assert [row["id"] for row in json.loads(capsys.readouterr().out)] == [3, 2, 1]


def test_client_lists_stop_at_a_limit(aip, platform, capsys):
    following = f"{platform.url}/api/v1/jobs/?cursor=b"
    platform.answers("GET /api/v1/jobs/", {"next": following, "results": [{"id": 3}, {"id": 2}]})

    aip("jobs", "list", "-n", "2", "-o", "json")

    assert len(platform.asked("GET /api/v1/jobs/")) == 1
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_client_output_lets_no_foreign_name_steer_the_terminal(aip, platform, capsys):
    row = {"id": 1, "name": "\x1b]52;c;ZXZpbA==\x07a\nb\u009b31m", "state": "running"}
    platform.answers("GET /api/v1/jobs/", {"next": None, "results": [row]})

    aip("jobs", "list")

    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u009b" not in out
    assert len(out.splitlines()) == 2


def test_output_table_keeps_columns_straight_for_wide_characters(capsys):
    rows = [{"name": "训练", "state": "running"}, {"name": "abcd", "state": "failed"}]

    output.table(rows, [("name", "name"), ("state", "state")])

    assert capsys.readouterr().out.splitlines() == ["NAME  STATE", "训练  running", "abcd  failed"]


def test_client_lists_when_empty_name_the_next_step_on_stderr(aip, platform, capsys):
    platform.answers("GET /api/v1/training/jobs/", {"next": None, "results": []})

    assert aip("train", "list") == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "aip train submit" in said.err


def test_client_interrupted_exits_with_130(aip, platform, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("aiplatform.client.http.Client.get", interrupted)

    assert aip("jobs", "wait", "3") == 130
    assert "continue there" in capsys.readouterr().err


def test_output_tells_times_and_sizes_as_people_do():
    now = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)

    assert output.ago("2026-01-02T11:57:00Z", now=now) == "3 min ago"
    assert output.ago("2026-01-01T11:00:00+00:00", now=now) == "1 d ago"
    assert output.ago("2026-01-02T12:04:30Z", now=now) == "in 4 min"
    assert output.ago("2026-01-02T16:00:00Z", now=now) == "in 4 h"
    assert output.duration(3723) == "1:02:03"
    assert output.size(1_234_567) == "1.2 MB"
    row = {"phase_label": "Training", "phase_done": 120, "phase_total": 500, "progress": 0.24}
    assert output.progress(row) == "Training 120/500 24 %"
    assert output.progress(row | {"phase_total": None, "progress": None}) == "Training"
    times = [
        {"name": "Training", "spent_s": 120.0, "left_s": 60.0},
        {"name": "Evaluating", "spent_s": 9, "left_s": None},
    ]
    assert output.phase_times({"phase_times": times}) == "Training 0:02:00 (0:01:00 left), Evaluating 0:00:09"


def test_client_config_that_is_broken_says_what_to_do(home: Path, capsys):
    home.mkdir(parents=True)
    (home / "config.json").write_text("{")

    assert main(["train", "list"]) == 2
    assert "Delete it and sign in again." in capsys.readouterr().err
