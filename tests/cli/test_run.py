"""`aip run`: what it sends, what it does at Ctrl-C, what it brings back and how it ends."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
import zipfile

import pytest

from aiplatform.client import waiting, working_folder
from aiplatform.client.commands import running
from aiplatform.client.errors import ClientError
from tests.cli.platform_double import Uploads

pytestmark = pytest.mark.sockets("a platform's double")

COMMANDS = "/api/v1/commands/"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project's folder, which is the current one."""
    made = tmp_path / "project"
    made.mkdir()
    (made / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def job(platform):
    """The platform takes a command as job 7, which succeeds and leaves two files."""

    def ends(state="succeeded", exit_code=0, outputs=("model.bin", "logs/a.txt")):
        uploads = Uploads(platform)
        platform.answers(f"POST {COMMANDS}", {"id": 7, "name": "train", "url": "/jobs/7/"}, status=201)
        log = {"text": "step 1\n", "offset": 0, "next_offset": 7, "size": 7, "ended": True}
        platform.answers("GET /api/v1/jobs/7/log/", log)
        row = {"id": 7, "state": state, "published": True, "exit_code": exit_code, "sentence": "It ended."}
        platform.answers("GET /api/v1/jobs/7/", row)
        platform.answers("GET /api/v1/jobs/7/files/", [{"path": name, "size_bytes": 1} for name in outputs])
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name in outputs:
                archive.writestr(name, name)
        platform.answers("GET /api/v1/jobs/7/files/zip/", packed.getvalue())
        return uploads

    return ends


def sent(platform):
    return platform.asked(f"POST {COMMANDS}")[0].json()


def test_run_sends_the_folder_follows_the_log_and_brings_the_outputs_back(aip, platform, folder, job, capfd):
    uploads = job()

    code = aip("run", "--gpus", 1, "-e", "A=1", "--", "python", "train.py", "--note", "two words")

    assert code == 0
    request = sent(platform)
    assert (request["command"], request["gpus_per_node"]) == ("python train.py --note 'two words'", 1)
    assert (request["variables"], request["code_upload"]) == ({"A": "1"}, "u1")
    with tarfile.open(fileobj=io.BytesIO(uploads.data["u1"])) as tar:
        assert tar.getnames() == ["project/train.py"]
    out, err = capfd.readouterr()
    assert out == "step 1\n"
    assert "2 files in aip-outputs/7" in err
    assert (folder / "aip-outputs/7/logs/a.txt").read_text() == "logs/a.txt"
    assert [path.name for path in (folder / "aip-outputs/7").iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("state", "left", "code"),
    [("succeeded", 0, 0), ("finished_early", 0, 0), ("failed", 3, 3), ("failed", -9, 137), ("lost", None, 6)],
)
def test_run_ends_with_the_code_of_its_command(aip, folder, job, state, left, code):
    job(state, left, outputs=())

    assert aip("run", "true") == code


def test_run_says_why_its_command_waits(aip, platform, folder, job, capsys):
    job(outputs=())
    over = {"id": 7, "state": "succeeded", "published": True, "exit_code": 0, "sentence": "It ended."}
    waits = {"id": 7, "state": "queued", "wait_sentence": "All 4 cards are held."}
    platform.answers("GET /api/v1/jobs/7/", waits, {"id": 7, "state": "running"}, over)

    assert aip("run", "true") == 0
    assert "queued: All 4 cards are held." in capsys.readouterr().err


def test_run_takes_one_word_as_a_shell_line_and_scripts_from_a_file(aip, platform, folder, job):
    job()
    (folder / "job.sh").write_text("make\nmake test\n")

    aip("run", "--no-outputs", "cd src && make")
    aip("run", "--no-outputs", "--script", "job.sh")

    assert [one.json()["command"] for one in platform.asked(f"POST {COMMANDS}")] == [
        "cd src && make", "make\nmake test\n",
    ]  # fmt: skip


def test_run_takes_variables_of_the_own_environment_and_refuses_missing_ones(
    aip, platform, folder, job, monkeypatch, capsys
):
    job()
    monkeypatch.setenv("HUB_TOKEN", "open-sesame")

    assert aip("run", "--no-outputs", "--secret", "HUB_TOKEN", "true") == 0
    assert sent(platform)["secrets"] == {"HUB_TOKEN": "open-sesame"}
    assert aip("run", "-e", "NOT_SET_HERE", "true") == 2
    assert "NOT_SET_HERE=value" in capsys.readouterr().err


def test_run_leaves_the_job_alone_at_ctrl_c_without_a_terminal(aip, platform, folder, job, monkeypatch, capsys):
    job()

    def interrupted(*_args, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(waiting, "follow_log", interrupted)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))

    assert aip("run", "true") == 130
    assert "Job 7 train:" in capsys.readouterr().err
    assert platform.asked("POST /api/v1/jobs/7/stop/") == []


@pytest.mark.parametrize(("answer", "stops", "code"), [("s\n", 1, 130), ("\n", 0, 130), ("w\n", 0, 0)])
def test_run_asks_at_ctrl_c_what_becomes_of_the_job(aip, platform, folder, job, monkeypatch, answer, stops, code):
    job()
    platform.answers("POST /api/v1/jobs/7/stop/", {"id": 7}, status=202)
    follow, times = waiting.follow_log, []

    def interrupted_once(*args, **more):
        times.append(1)
        if len(times) == 1:
            raise KeyboardInterrupt
        follow(*args, **more)

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(running.waiting, "follow_log", interrupted_once)
    monkeypatch.setattr("sys.stdin", Terminal(answer))

    assert aip("run", "--no-outputs", "true") == code
    assert len(platform.asked("POST /api/v1/jobs/7/stop/")) == stops


def test_run_does_not_send_a_whole_home(aip, platform, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert aip("run", "true") == 2
    assert "--no-code" in capsys.readouterr().err
    assert platform.seen == []


def test_run_without_a_command_says_how(aip, folder, capsys):
    assert aip("run") == 2
    assert "aip run -- python train.py" in capsys.readouterr().err


@pytest.mark.parametrize("repository", [True, False])
def test_working_folder_is_what_git_would_take(tmp_path, repository):
    for name in (
        "train.py",
        "src/a.py",
        "data/big.bin",
        "node_modules/x.js",
        "aip-outputs/7/a",
        ".env",
        "debug.log",
        "keep.log",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / ".gitignore").write_text("data/\n*.log\n!keep.log\n.env\n")
    os.symlink("/etc/passwd", tmp_path / "link")
    if repository:
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)

    assert list(working_folder.names(tmp_path)) == [".gitignore", "keep.log", "src/a.py", "train.py"]


def test_working_folder_keeps_its_only_folder_and_what_is_executable(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "run.sh").write_text("x")
    (tmp_path / "src" / "run.sh").chmod(0o755)

    packed = working_folder.pack(tmp_path)

    with tarfile.open(fileobj=io.BytesIO(packed.read(0, packed.size))) as tar:
        assert [(one.name, one.mode) for one in tar] == [(f"{tmp_path.name}/src/run.sh", 0o755)]


def test_working_folder_that_is_too_large_is_refused_before_anything_is_sent(tmp_path, monkeypatch):
    monkeypatch.setattr(working_folder, "MAX_FILES", 2)
    for number in range(3):
        (tmp_path / f"{number}").write_text("x")

    with pytest.raises(ClientError, match="leave files out"):
        working_folder.pack(tmp_path)


def test_jobs_download_fetches_the_outputs_of_any_job(aip, folder, job):
    job()

    assert aip("jobs", "download", 7, "--to", "here") == 0
    assert (folder / "here/model.bin").read_text() == "model.bin"
