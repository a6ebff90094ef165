"""Details of the client that cost users time: scripts, dashes, wide tables, terminals and a busy platform."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aiplatform.client import log_lines, output
from aiplatform.client.commands import running
from aiplatform.client.errors import ClientError
from aiplatform.client.http import MAX_BUSY_S
from training.studies import space

POSTED = "/api/v1/commands/"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("job.py", "import sys, helper\nprint(helper.VALUE + len(sys.argv))"),
        ("job", "#!/usr/bin/env python3\nimport helper\nprint('''AIP_SCRIPT\nAIP_SCRIPT''' and helper.VALUE + 1)\n"),
        ("job.sh", "#!/bin/bash\necho $((41 + 1))\n"),
        ("job.sh", "echo $((41 + 1))\n"),
    ],
)
def test_script_runs_in_its_own_language(tmp_path, name, text):
    (tmp_path / "helper.py").write_text("VALUE = 41\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)

    done = subprocess.run(
        ["sh", "-c", running._script(name, text)], cwd=tmp_path, env={"PATH": f"{tmp_path}/bin:/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (done.stdout, done.returncode) == ("42\n", 0), done.stderr


@pytest.mark.sockets("a platform's double")
def test_value_of_an_option_may_begin_with_a_dash(aip, platform):
    platform.answers("GET /api/v1/datasets/", {"results": [{"id": 1, "name": "digits"}], "next": None})
    version = {"id": 5, "number": 1, "annotated": True, "state": "ready"}
    platform.answers("GET /api/v1/datasets/1/versions/", {"results": [version], "next": None})
    platform.answers("POST /api/v1/training/jobs/preview/", {"sentence": "It can start."})

    code = aip("train", "submit", "--preset", "detect", "--data", 5, "--extra", "-ShowStep", "--dry-run")

    assert code == 0
    assert platform.asked("POST /api/v1/training/jobs/preview/")[0].json()["extra"] == "-ShowStep"


def test_range_with_a_colon_is_refused_with_the_right_form():
    with pytest.raises(space.BadRange, match=r"write the range as x = 0 \.\. 1\."):
        space._of_line("x=0:1")

    assert space._of_line("mode = a:b, c").choices == ("a:b", "c")


def test_log_keeps_colors_and_leaves_the_terminal_alone():
    text = "\x1b[2J\x1b[H\x1b[31mred\x1b[0m\x1b]0;title\x07 \x1b[1A\x1b[Kdone\x1bc\n"

    assert log_lines.without_cursor(text) == "\x1b[31mred\x1b[0m done\n"


def test_table_fits_the_terminal_and_is_whole_in_a_pipe(monkeypatch, capsys):
    rows = [{"name": "detect", "description": "word " * 60, "id": 7}]
    columns = output.columns("id, name, description")

    output.table(rows, columns)
    assert len(capsys.readouterr().out.splitlines()[1]) > 300

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    output.table(rows, columns)
    lines = capsys.readouterr().out.splitlines()
    assert [len(line) <= 60 for line in lines] == [True, True]
    assert lines[1].startswith("7   detect  word")
    assert lines[1].endswith("…")


def test_busy_platform_gets_the_request_again(monkeypatch):
    from aiplatform.client.config import Config
    from aiplatform.client.http import Client

    busy = ClientError("Too busy.", status=503, retry_after_s=5)
    answers, keys, pauses = [busy, busy, {"id": 1}], set(), []

    def call(method, route, *, body, headers):
        keys.add(headers.get("Idempotency-Key"))
        answer = answers.pop(0)
        if isinstance(answer, ClientError):
            raise answer
        return answer

    client = Client(Config(url="http://platform.example", token=""))
    monkeypatch.setattr(client, "call", call)

    assert client.post("commands/", {}, once=True, pause=pauses.append) == {"id": 1}
    assert (pauses, len(keys)) == ([5, 5], 1)
    answers[:] = [busy] * 40
    with pytest.raises(ClientError, match="Too busy"):
        client.post("commands/", {}, once=True, pause=pauses.append)
    assert sum(pauses) == 10 + MAX_BUSY_S
    answers[:] = [busy]
    with pytest.raises(ClientError, match="Too busy"):
        client.post("commands/", {}, pause=pauses.append)
