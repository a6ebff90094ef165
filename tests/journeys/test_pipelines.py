"""A pipeline whose platform is killed again and again: no step is done twice, none is lost."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from aiplatform.client.config import Config
from aiplatform.client.http import Client
from tests.journeys.up import PASSWORD, Browser, Up, call, first_admin, running, until

pytestmark = pytest.mark.journey

KILLS = int(os.environ.get("AIP_PIPELINE_KILLS", "8"))
ITEMS = max(12, KILLS)
EVERYTHING = ("aiplatform.cli.web", "work@node1", "cpu@node1", "manage.py\0scheduler", "manage.py\0agent")
FIGURES = 'echo \'{"AP50": 0.9}\' > "$AIP_OUTPUT_DIR/metrics.json"'

STEPS: dict[str, Any] = {
    "list": {"kind": "items", "with": {"values": list(range(ITEMS))}},
    "work": {"kind": "command", "with": {"command": f"sleep 0.5; {FIGURES}", "cpus": 0.5}, "each": "list.items"},
    "gate": {"kind": "gate", "with": {"rule": "AP50 > 0.8"}, "from": {"figures": "work.figures"}},
    "ask": {"kind": "approve", "with": {"people": "bob", "question": "Ship it?"}, "when": "gate.passed"},
    "ship": {"kind": "command", "with": {"command": "true", "cpus": 0.5}, "when": "ask.passed"},
    "alarm": {"kind": "notify", "with": {"text": "broken"}, "after": ["work"], "rule": "any_failed"},
}


def rows(up: Up, question: str, *values: object) -> list[tuple[Any, ...]]:
    """Read tables without asking the platform, which would be nudged by that."""
    path = f"file:{up.folder / 'aiplatform.sqlite3'}?mode=ro"
    with closing(sqlite3.connect(path, uri=True, timeout=30)) as base:
        return base.execute(question, values).fetchall()


def back(up: Up, token: str) -> None:
    until(lambda: call(up.url, token, "GET", "me/")[0] == 200, 120, "The web server's return")


def test_no_step_is_done_twice_and_none_is_lost_whatever_is_killed(tmp_path):
    chance = random.Random(KILLS)
    with running(tmp_path / "data", AIP_CPU_OVERCOMMIT="1") as up:
        token = first_admin(up)
        client = Client(Config(url=up.url, token=token))
        bob = second_person(up, token)
        made = client.post("pipelines/", {"name": "killed", "spec": {"steps": STEPS}})
        run = client.post(f"pipelines/{made['id']}/runs/", {"limit": 4}, once=True)["id"]

        for _kill in range(KILLS):
            time.sleep(chance.uniform(0.1, 1.2))  # pause: anything may be under way when it dies
            up.kill(chance.choice(EVERYTHING))
        back(up, token)

        until(lambda: state(up, run, "ask") == "asking", 240, "The question")
        up.kill("manage.py\0scheduler")
        question = until(lambda: asked(up, bob), 60, "The question for Bob")
        assert call(up.url, bob, "POST", f"pipeline-approvals/{question}/answer/", {"answer": "passed"})[0] == 201
        up.kill("cpu@node1")
        until(
            lambda: rows(up, "SELECT state FROM pipelines_pipelinerun WHERE id = ?", run)[0][0] == "ok", 240, "Its end"
        )

        found = rows(up, "SELECT step, item, attempt, state, job_id FROM pipelines_steprun WHERE run_id = ?", run)
        assert sorted(row[:3] for row in found) == sorted(
            [(step, -1, 1) for step in STEPS] + [("work", item, 1) for item in range(ITEMS)]
        )
        assert {row[3] for row in found if row[0] != "alarm"} == {"ok"}
        jobs = [row[4] for row in found if row[4] is not None]
        assert len(set(jobs)) == len(jobs) == ITEMS + 1
        assert rows(up, "SELECT COUNT(*) FROM workers_job WHERE kind = 'command'")[0][0] == ITEMS + 1


def state(up: Up, run: int, step: str) -> str:
    found = rows(up, "SELECT state FROM pipelines_steprun WHERE run_id = ? AND step = ? AND item = -1", run, step)
    return str(found[0][0]) if found else ""


def asked(up: Up, token: str) -> int:
    status, answer = call(up.url, token, "GET", "pipeline-approvals/")
    return int(answer["results"][0]["id"]) if status == 200 and answer["results"] else 0


def second_person(up: Up, admin: str) -> str:
    """A token of Bob's, who may use everything."""
    roles = call(up.url, admin, "GET", "roles/")[1]["results"]
    role = next(one["id"] for one in roles if one["name"] == "User")
    about = {"username": "bob", "nickname": "Bob", "password": PASSWORD, "roles": [role]}
    assert call(up.url, admin, "POST", "users/", about)[0] == 201
    browser = Browser(up.url)
    browser.post("/login/", username="bob", password=PASSWORD)
    browser.post("/account/password/", current=PASSWORD, password=PASSWORD + "x", again=PASSWORD + "x")
    status, answer = call(up.url, "", "POST", "auth/token/", {"username": "bob", "password": PASSWORD + "x"})
    assert status == 201, answer
    return str(answer["token"])
