"""What an environment finds when it starts, and how its home is filled."""

from __future__ import annotations

import os
import subprocess
import sys
from http.client import HTTPConnection
from socket import AF_UNIX, socket

import pytest

from aiplatform.lib.errors import DomainError
from datasets.files import homes
from tests.factories import training as factory
from tests.running import wait_for
from training.environments import services
from training.environments.kind import START, EnvironmentKind
from training.programs.start import CannotRun
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.execution import tickets
from workers.jobs import buttons

kind = EnvironmentKind()


def prepared(environment):
    """The launch and the run directory of the first attempt, as launching would ask for them."""
    Job.objects.filter(pk=environment.pk).update(attempt_number=1)
    job = Job.objects.get(pk=environment.pk)
    attempt, _made = Attempt.objects.get_or_create(job=job, number=1)
    run = RunDir.for_attempt(job.pk, 1)
    run.path.mkdir(parents=True, exist_ok=True)
    return kind.prepare(job, attempt, run), run


def test_environment_is_prepared_with_its_home_data_and_secrets(submitted, stub, cells, alice):
    row = submitted(folder="work", datasets=[cells], variables={"A": "1"}, secrets={"HUB": "open-sesame"})

    launch, _run = prepared(row)

    home = homes.path_of(alice)
    assert launch.read_write == [home]
    assert home.is_dir()
    assert cells.path in launch.read_only
    assert (launch.env["HOME"], launch.env["A"], launch.env["HUB"]) == (str(home), "1", "open-sesame")
    assert launch.env["JUPYTER_TOKEN"] == services.token_of(row)
    assert {"open-sesame", services.token_of(row)} <= set(launch.secrets)
    assert not any(services.token_of(row) in word for word in launch.argv)
    assert f"--ServerApp.base_url=/jobs/{row.pk}/jupyter/" in launch.argv
    assert prepared(row)[0] == launch


@pytest.mark.sockets("the stand-in for JupyterLab listens on one")
def test_environment_starts_in_its_folder_and_answers_on_a_socket(submitted, stub, alice, tmp_path):
    code = factory.code(alice, tmp_path / "mine", train="print(1)\n")
    row = submitted(folder="work/mine", code=code)
    launch, run = prepared(row)
    (tmp_path / "t").mkdir()
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path / "t")} | launch.env

    with subprocess.Popen(launch.argv, cwd=run.code, env=env, stdout=subprocess.PIPE) as process:
        try:
            wait_for((tmp_path / "t" / "jupyter.sock").exists)
            with socket(AF_UNIX) as channel:
                channel.connect(str(tmp_path / "t" / "jupyter.sock"))
                asked = HTTPConnection("job")
                asked.sock = channel
                asked.request("GET", f"/jobs/{row.pk}/jupyter/api")
                assert asked.getresponse().status == 200
        finally:
            process.kill()

    folder = homes.path_of(alice) / "work" / "mine"
    assert (folder / "train.py").read_text() == "print(1)\n"


def test_environment_start_keeps_what_somebody_changed(tmp_path):
    home, code, tmp = tmp_path / "home", tmp_path / "code", tmp_path / "tmp"
    for folder in (home / "work", code / "deep", tmp):
        folder.mkdir(parents=True)
    (home / "work" / "mine.py").write_text("changed")
    (code / "mine.py").write_text("sent")
    (code / "deep" / "run.sh").write_text("#!/bin/sh\n")
    (code / "deep" / "run.sh").chmod(0o755)
    (code / "link").symlink_to("mine.py")

    argv = [sys.executable, "-I", START, home, "work", code, "/usr/bin/env", "true"]
    done = subprocess.run(argv, env={"TMPDIR": str(tmp), "PATH": os.environ["PATH"]}, check=False, capture_output=True)

    assert b"ServerApp.sock" not in done.stdout
    assert (home / "work" / "mine.py").read_text() == "changed"
    assert os.access(home / "work" / "deep" / "run.sh", os.X_OK)
    assert (home / "work" / "link").is_symlink()


def test_environment_without_code_leaves_the_home_as_it_is(submitted, stub, alice):
    launch, _run = prepared(submitted())

    assert launch.argv[launch.argv.index(str(homes.path_of(alice))) + 1 :][:2] == ["", ""]


def test_environment_is_refused_at_its_start_where_something_is_gone(submitted, stub, cells, alice):
    row = submitted(datasets=[cells])
    cells.delete()
    with pytest.raises(CannotRun, match="cells v1"):
        prepared(row)

    row = submitted()
    alice.is_active = False
    alice.save()
    with pytest.raises(CannotRun):
        prepared(row)


def test_environment_without_a_container_image_is_refused_in_containers(submitted, stub, monkeypatch):
    monkeypatch.setattr(tickets, "tier", lambda: (4, ""))

    with pytest.raises(CannotRun, match="Create a new workspace with a container image"):
        prepared(submitted())


def test_environment_restore_checks_data_and_says_what_it_brings(submitted, cells, alice):
    row = submitted(datasets=[cells])
    Job.objects.filter(pk=row.pk).update(state="stopped")
    job = Job.objects.get(pk=row.pk)

    way = next(way for way in buttons.again(job, alice, may_control=True) if way.key == "restore")
    cells.delete()

    assert "packages" in str(way.description)
    with pytest.raises(DomainError):
        kind.check_restore(job)
