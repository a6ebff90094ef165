"""A home folder from the terminal: a large file whose way is cut, and code of a job that comes from there."""

from __future__ import annotations

import hashlib
import os
import stat

import pytest

from tests.journeys.terminal import aip
from tests.journeys.up import call, first_admin, running, until
from tests.running import printed_in

pytestmark = pytest.mark.journey

LARGE = 400 << 20


@pytest.mark.long
def test_aip_files_bring_what_was_cut_and_give_it_back(tmp_path):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "train.py").write_text("print('from', 'home')\n")
    with (project / "big.bin").open("wb") as file:
        for _part in range(LARGE >> 20):
            file.write(os.urandom(1 << 20))
    with running(tmp_path / "platform") as up:
        token = first_admin(up)

        def said(*words: str, code: int = 0) -> str:
            client = aip(up.url, token, project, *words)
            out, told = client.communicate(timeout=240)
            assert client.returncode == code, out + told
            return out + told

        def arrived() -> int:
            return sum(path.stat().st_size for path in (tmp_path / "platform" / "uploads").glob("*/data"))

        cut = aip(up.url, token, project, "files", "put", "big.bin", "--to", "data")
        until(lambda: arrived() > LARGE // 20, 60, "nothing arrived")
        cut.kill()
        cut.communicate()
        before = arrived()
        going = aip(up.url, token, project, "files", "put", "big.bin", "src", "--to", "data")
        until(lambda: arrived() > before or going.poll() is not None, 60, "it did not go on")
        up.kill("aiplatform.cli.web")
        _out, told = going.communicate(timeout=240)
        assert going.returncode == 0, told
        until(lambda: call(up.url, token, "GET", "files/")[0] == 200, 60, "the web did not come back")
        said("files", "get", "data/big.bin", "--to", "back.bin")
        listed = said("files", "ls", "data")
        made = call(up.url, token, "POST", "commands/", {
            "command": "python train.py", "home_path": "data/src", "cpus": 0.5,
        })[1]  # fmt: skip
        until(lambda: call(up.url, token, "GET", f"jobs/{made['id']}/")[1]["state"] == "succeeded", 90, "it never ran")
        log = printed_in(call(up.url, token, "GET", f"jobs/{made['id']}/log/")[1]["text"])
        home = next(path for path in (tmp_path / "platform" / "home").iterdir() if not path.name.startswith("."))
        mode = stat.S_IMODE(home.stat().st_mode)
        said("files", "rm", "data", "--yes")
        left = list(home.iterdir())

    assert before < LARGE
    assert "Resuming at" in told
    assert (
        hashlib.sha256((project / "back.bin").read_bytes()).digest()
        == hashlib.sha256((project / "big.bin").read_bytes()).digest()
    )
    assert "big.bin" in listed
    assert "src/" in listed
    assert log.strip() == "from home"
    assert (mode, left) == (0o700, [])
