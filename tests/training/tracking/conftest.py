from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import Client

from accounts.services import tokens as api_tokens
from tests.factories import training as factory
from tests.factories import work
from training.commands import services as commands
from training.commands.services import CommandRequest
from training.experiments.models import Run
from training.experiments.tracking import tokens
from workers.core.models import Attempt, Job

TRACKING = "/api/mlflow/api/2.0/mlflow/"
ARTIFACTS = "/api/mlflow/api/2.0/mlflow-artifacts/artifacts"


@dataclass
class Script:
    """A program with a token: what it asks, and what it is answered."""

    secret: str
    run: Run | None = None

    def ask(self, method: str, path: str, body: Any = None, *, base: str = TRACKING, **headers: str) -> Any:
        given: dict[str, Any] = {}
        if method == "GET":
            given["data"] = body or {}
        elif isinstance(body, bytes):
            given = {"data": body, "content_type": "application/octet-stream"}
        elif body is not None:
            text = body if isinstance(body, str) else json.dumps(body)
            given = {"data": text, "content_type": "application/json"}
        ask = getattr(Client(headers={"Authorization": f"Bearer {self.secret}"} | headers), method.lower())
        return ask(f"{base}{path}", **given)

    def get(self, path: str, /, **fields: Any) -> Any:
        return said(self.ask("GET", path, fields))

    def post(self, path: str, /, **fields: Any) -> Any:
        return said(self.ask("POST", path, fields))

    def refused(self, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Status and code of a refusal."""
        answer = self.ask(method, path, body)
        return answer.status_code, answer.json()["error_code"]

    def made(self, name: str = "first", experiment: str = "0", **fields: Any) -> str:
        """A new run; its id."""
        return self.post("runs/create", experiment_id=experiment, run_name=name, **fields)["run"]["info"]["run_id"]

    def data(self, uid: str) -> dict[str, dict[str, Any]]:
        """What a run holds, by key."""
        found = self.get("runs/get", run_id=uid)["run"]["data"]
        return {kind: {row["key"]: row["value"] for row in found[kind]} for kind in ("metrics", "params", "tags")}

    def put(self, path: str, content: bytes) -> Any:
        return self.ask("PUT", f"/{path}", content, base=ARTIFACTS)

    def fetched(self, path: str) -> Any:
        return self.ask("GET", f"/{path}", base=ARTIFACTS)

    def listed(self, path: str) -> dict[str, Any]:
        """Names in a folder, with their sizes; None for folders."""
        found = said(self.ask("GET", "", {"path": path}, base=ARTIFACTS))["files"]
        return {row["path"]: None if row["is_dir"] else row["file_size"] for row in found}


def said(answer: Any) -> Any:
    assert answer.status_code == 200, answer.content
    return answer.json()


def laptop_of(user: Any, **how: Any) -> Script:
    return Script(api_tokens.issue(user=user, name="laptop", **how)[1])


def begun(job: Job) -> Attempt:
    """Put a queued job to work, as far as rows and folders show it."""
    Job.objects.filter(pk=job.pk).update(state="running", attempt_number=1)
    job.refresh_from_db()
    attempt = Attempt.objects.create(job=job, number=1, state="running")
    work.run_dir(job).outputs.mkdir()
    return attempt


@pytest.fixture
def laptop(alice) -> Script:
    return laptop_of(alice)


@pytest.fixture
def bobs(bob) -> Script:
    return laptop_of(bob)


@pytest.fixture
def command(alice, cluster):
    work.node(cores=4)
    return commands.submit(user=alice, request=CommandRequest(command="python train.py", cpus=1.0, name="learn"))


@pytest.fixture
def script(command) -> Script:
    """The program of Alice's running command."""
    return Script(tokens.issue(begun(command.job)), Run.objects.get(job=command.job))


@pytest.fixture
def trained(alice, cluster):
    work.node(cores=4)
    data = factory.version(alice, "digits", task="classification")
    return factory.training(alice, data=data, name="first", preset="classify", params={"lr": 0.1})
