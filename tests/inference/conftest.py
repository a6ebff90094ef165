"""A server process of our own, started once per model."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.cache import cache

from inference.serving import endpoints as serving
from inference.serving.scaling import load
from inference.serving.traffic import routing
from tests.factories import models as factory
from tests.inference.launching import get, launch, start_server
from tests.inference.running import set_state
from tests.inference.scaled import BUSY
from workers.access.proxy import endpoints

__all__ = ["get", "launch", "start_server"]  # where others look for them


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., int]]:
    """serve(model_dir, **env) → port; ended with the module."""
    running: list[subprocess.Popen[bytes]] = []

    def start(model_dir: Path, **env: str) -> int:
        process, port = start_server(model_dir, **env)
        running.append(process)
        return port

    yield start
    for process in running:
        process.terminate()
    for process in running:
        process.wait(10)


def run(argv: list[str], cwd: Path, env: dict[str, str]) -> str:
    """Run a program to its end with an otherwise empty environment; returns its output."""
    for name in ("AIP_OUTPUT_DIR", "AIP_CHECKPOINT_DIR"):
        Path(env[name]).mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        argv, cwd=cwd, env={"PATH": os.environ["PATH"], **env}, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def scaled(alice, tmp_path):
    """A service that may have three servers; its first one runs."""
    version = factory.model_version(alice, tmp_path, name="tiny")
    made = serving.create(user=alice, name="demo", model_version=version, limits={"max_replicas": 3})
    set_state(made.job, "running")
    made.refresh_from_db()
    cache.clear()
    routing._loads.clear()
    return made


@pytest.fixture
def places(monkeypatch, scaled):
    """Where the servers of jobs are, by the job's number; all of them answer."""
    addresses: dict[int, tuple[str, int]] = {scaled.job_id: ("127.0.0.1", 1)}
    monkeypatch.setattr(endpoints, "endpoint", lambda job: addresses.get(job.pk))
    monkeypatch.setattr(serving, "is_ready", lambda address, key: True)
    monkeypatch.setattr(serving, "key_for", lambda job, attempt: "secret")
    return addresses


@pytest.fixture
def server_load(monkeypatch):
    """Load that the servers report; tests change its `look`."""
    state = {"look": BUSY}
    monkeypatch.setattr(load, "measure", lambda jobs: state["look"])
    return state
