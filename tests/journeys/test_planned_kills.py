"""Upload and train in one act while everything that carries it is killed: one training comes out, never two or none."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from aiplatform.client import tus
from aiplatform.client.config import Config
from aiplatform.client.http import Client
from tests.journeys import dying
from tests.journeys.up import ROOT, Up, call, first_admin, running, until

pytestmark = pytest.mark.journey
ROUNDS = int(os.environ.get("AIP_PLANNED_KILLS", "1"))  # plans beside which anything is killed at any moment
EVERYTHING = ("aiplatform.cli.web", "work@node1", "cpu@node1", "manage.py\0scheduler", "manage.py\0agent")
IMPORTS, BEGINS = "datasets.services.imports:run", "training.runs.planned:begin"
PARAMS = {"width": 16, "height": 16, "iterations": 5}
#: The command of the terminal, sending in small pieces as it would a large file.
SENDS = """
import sys
from aiplatform.client import main, tus
tus.CHUNK, tus.TRIES = 8192, 9  # a web server comes back late where the machine is busy
sys.exit(main.main(sys.argv[1:]))
"""


def animals(folder: Path, name: str, *, pictures: int = 6) -> Path:
    """An archive of cats and horses, each picture other than all others."""
    path, chance = folder / f"{name}.zip", random.Random(name)
    with zipfile.ZipFile(path, "w") as archive:
        for split in ("train", "val"):
            for number in range(pictures):
                out = io.BytesIO()
                Image.frombytes("L", (16, 16), chance.randbytes(256)).save(out, "PNG")
                archive.writestr(f"{split}/{('cat', 'horse')[number % 2]}/{number}.png", out.getvalue())
    return path


class Stage:
    """A platform, a person, and what its tables say."""

    def __init__(self, up: Up, token: str, folder: Path) -> None:
        self.up, self.token, self.folder = up, token, folder
        self.client = Client(Config(url=up.url, token=token))

    def rows(self, question: str, *values: object) -> list[sqlite3.Row]:
        """Read tables without asking the platform, which would be nudged by that."""
        with contextlib.closing(
            sqlite3.connect(f"file:{self.up.folder / 'aiplatform.sqlite3'}?mode=ro", uri=True)
        ) as base:
            base.row_factory = sqlite3.Row
            return base.execute(question, values).fetchall()

    def plan(self, name: str, *, pictures: int = 6) -> dict[str, Any]:
        upload = tus.upload(self.client, animals(self.folder, name, pictures=pictures), quiet=True)
        fields = {"name": name, "preset": "hog_svm", "params": PARAMS, "cpus": 0.5, "upload": upload}
        return dict(self.client.post("training/planned/", fields, once=True))

    def import_of(self, plan: int) -> int:
        return int(self.rows("SELECT data_import_id FROM training_plannedtraining WHERE id = ?", plan)[0][0])

    def back(self) -> None:
        """Wait until the web server answers again."""
        until(lambda: call(self.up.url, self.token, "GET", "me/")[0] == 200, 60, "The web server's return")


@pytest.mark.long
def test_plan_gives_one_training_whatever_is_killed_and_whenever(tmp_path):
    with running(tmp_path / "data", AIP_CPU_OVERCOMMIT="1") as up:
        stage = Stage(up, first_admin(up), tmp_path)

        sent = command_whose_server_dies(stage)
        stage.back()  # the command may have had its last answer before the last of the two kills
        died, broken = workers_that_die(stage)
        beside = [killed_at_any_moment(stage, number) for number in range(ROUNDS)]
        for word in EVERYTHING:  # right after trainings were submitted
            until(lambda word=word: up.kill(word), 60, f"A start of {word}")
        stage.back()

        rows = [sent, *died, *beside]
        until(lambda: all(stage.client.get(f"training/planned/{row}/")["training"] for row in rows), 150, "All starts")
        kept = {sent, *beside}
        for plan in set(rows) - kept:  # that they are there is enough
            training = stage.client.get(f"training/planned/{plan}/")["training"]
            call(up.url, stage.token, "POST", f"training/jobs/{training}/stop/")
        over = {"succeeded", "failed", "lost", "stopped"}
        jobs = "SELECT j.state, t.id, p.id AS plan FROM workers_job j JOIN training_trainingjob t ON t.job_id = j.id"
        jobs += " LEFT JOIN training_plannedtraining p ON p.training_id = t.id"
        until(lambda: all(row["state"] in over for row in stage.rows(jobs)), 150, "The end of all trainings")
        found = stage.rows(jobs)
        assert {row["state"] for row in found if row["plan"] in kept} == {"succeeded"}
        assert {row["state"] for row in found} <= {"succeeded", "stopped"}
        assert sorted(row["plan"] for row in found) == sorted(rows), "a training that is nobody's, or two of a plan"
        said = until(lambda: why_failed(stage, broken), 60, "The refusal of data without pictures")
        assert "no image" in said
        versions = stage.rows("SELECT COUNT(*) AS n FROM datasets_datasetversion")[0]["n"]
        assert versions == len(rows), "a version too many, or too few"


def why_failed(stage: Stage, plan: int) -> str:
    row = stage.client.get(f"training/planned/{plan}/")
    return str(row["sentence"]) if row["state"] == "failed" else ""


def command_whose_server_dies(stage: Stage) -> int:
    """`aip train submit --data` goes on where the web server dies in the midst of the upload, and at its end."""
    archive = animals(stage.folder, "sent", pictures=60)
    env = stage.up.environment | {"AIP_URL": stage.up.url, "AIP_TOKEN": stage.token}
    env |= {"HOME": str(stage.folder), "XDG_CONFIG_HOME": str(stage.folder)}
    argv = ["train", "submit", "sent", "--data", str(archive), "--preset", "hog_svm", "--cpus", "0.5", "--json"]
    argv += [word for name, value in PARAMS.items() for word in ("-p", f"{name}={value}")]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = subprocess.Popen([sys.executable, "-c", SENDS, *argv], cwd=ROOT, env=env, **pipes)
    try:
        looks = "SELECT state FROM datasets_upload WHERE filename = 'sent.zip'"
        size = lambda: sum(path.stat().st_size for path in (stage.up.folder / "uploads").glob("*/data"))  # noqa: E731 - a name for one line
        until(lambda: command.poll() is not None or size() > 0, 30, "The first piece")
        assert stage.up.kill("aiplatform.cli.web"), command.poll()
        whole = lambda: "open" not in [row["state"] for row in stage.rows(looks)]  # noqa: E731 - a name for one line
        until(lambda: command.poll() is not None or whole(), 90, "The end of the upload")
        if command.poll() is None:
            stage.up.kill("aiplatform.cli.web")
        out, err = command.communicate(timeout=240)
        assert command.returncode == 0, (out, err)
        return int(json.loads(out)["id"])
    finally:
        command.kill()
        command.wait()


def workers_that_die(stage: Stage) -> tuple[list[int], int]:
    """Plans whose workers die at all moments, each at one, and a plan whose data cannot be used.

    The platform's own worker stands still meanwhile, and is killed at the end.
    """
    path = stage.folder / "words.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no pictures")
    assert stage.up.kill("work@node1", signal.SIGSTOP) == 1
    plans, dead = [], []
    for number, moment in enumerate(dying.IMPORTING.values()):
        plans.append(stage.plan(f"import{number}")["id"])
        dead.append(dying.start(stage.up, moment, (IMPORTS, stage.import_of(plans[-1]))))
    for number, moment in enumerate(dying.SUBMITTING.values()):
        plans.append(stage.plan(f"submit{number}")["id"])
        dead.append(dying.start(stage.up, moment, (IMPORTS, stage.import_of(plans[-1])), (BEGINS, plans[-1])))
    upload = tus.upload(stage.client, path, quiet=True)
    row = stage.client.post("training/planned/", {"preset": "hog_svm", "upload": upload}, once=True)
    dead.append(dying.start(stage.up, dying.READING, (IMPORTS, stage.import_of(row["id"]))))
    for process in dead:
        dying.died(process)
    assert stage.up.kill("work@node1") == 1
    return plans, int(row["id"])


def killed_at_any_moment(stage: Stage, number: int) -> int:
    """A plan beside which each process of the platform is killed once, in whatever order and at whatever moment."""
    chance = random.Random(number)
    row = stage.plan(f"any{number}", pictures=40)
    tried = "SELECT id FROM datasets_import WHERE state NOT IN ('done', 'failed') AND tries > 1"
    for word in chance.sample(EVERYTHING, len(EVERYTHING)):
        time.sleep(chance.uniform(0.0, 1.5))  # the moment of the kill, not a wait for anything
        if word == "work@node1":  # an import that broke three workers is given up, and plans share the worker
            until(lambda: not stage.rows(tried), 60, "The end of an import that was interrupted before")
        until(lambda word=word: stage.up.kill(word), 60, f"A start of {word}")
    stage.back()
    return int(row["id"])
