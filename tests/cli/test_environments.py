"""`aip env`: against the real API, and what it waits for."""

from __future__ import annotations

import json

import pytest

from tests.factories import work
from training.environments.models import Environment
from workers.core.models import Job

pytestmark = pytest.mark.sockets("a platform's double")

ROW = {"id": 7, "name": "lab", "url": "/jobs/7/", "state": "running", "condition": "starting", "folder": "work"}


def test_env_is_created_listed_kept_and_deleted(real_aip, alice, capfd):
    work.node(cores=4)

    made = real_aip(
        alice, "env", "create", "mine", "--folder", "work", "-e", "A=1", "--secret", "K=open-sesame",
        "--max-runtime", "3h", "--cpus", 1, "--idle-hours", 1,
    )  # fmt: skip

    row = Environment.objects.get()
    assert (made, capfd.readouterr().out.strip()) == (0, str(row.pk))
    assert (row.job.name, row.folder, row.variables, row.idle_hours) == ("mine", "work", {"A": "1"}, 1.0)
    assert real_aip(alice, "env", "list", "--json") == 0
    assert json.loads(capfd.readouterr().out)[0]["name"] == "mine"
    assert real_aip(alice, "env", "keep", row.pk) == 1
    assert real_aip(alice, "env", "extend", row.pk, "--hours", 1) == 0
    assert real_aip(alice, "env", "delete", row.pk, "--yes") == 1
    assert real_aip(alice, "env", "stop", row.pk) == 0
    assert Job.objects.get(pk=row.pk).state == "stopped"
    assert real_aip(alice, "env", "delete", row.pk, "--yes") == 0
    assert real_aip(alice, "env", "show", row.pk) == 5


def test_env_create_waits_until_jupyterlab_answers(aip, platform, capfd):
    platform.answers("POST /api/v1/environments/", ROW, status=201)
    platform.answers("GET /api/v1/environments/7/", ROW, {**ROW, "condition": "ready"})

    code = aip("env", "create", "--wait")

    out, err = capfd.readouterr()
    assert code == 0
    assert "ready" in out
    assert "starting" in err


def test_env_create_says_when_it_ended_before(aip, platform, capfd):
    platform.answers("POST /api/v1/environments/", ROW, status=201)
    gone = {**ROW, "state": "failed", "condition": "", "sentence": "JupyterLab is not installed on this node."}
    platform.answers("GET /api/v1/environments/7/", gone)

    code = aip("env", "create", "--wait")

    assert code == 6
    assert "JupyterLab is not installed" in capfd.readouterr().err


def test_env_create_takes_an_image_by_name(aip, platform):
    image = {"id": 4, "name": "lab", "tag": "2", "state": "ready"}
    platform.answers("GET /api/v1/images/", {"results": [image], "next": None})
    platform.answers("POST /api/v1/environments/", ROW, status=201)

    assert aip("env", "create", "--image", "lab:2") == 0

    assert platform.asked("POST /api/v1/environments/")[0].json()["image"] == 4
