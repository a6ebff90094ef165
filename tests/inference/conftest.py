"""A server process of our own, started once per model."""

from __future__ import annotations

import http.client
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start_server(model_dir: Path, **env: str) -> tuple[subprocess.Popen[bytes], int]:
    """A model server as a job would start it; returns once it answers ready."""
    port = free_port()
    given = {"AIP_MODEL_DIR": str(model_dir), "AIP_PORT": str(port), "AIP_MODEL_NAME": "tiny", **env}
    process = subprocess.Popen([sys.executable, "-m", "inference.server"], cwd=ROOT, env={**os.environ, **given})
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        try:
            if get(port, "/v2/health/ready", env.get("AIP_SERVICE_KEY", "")) == 200:
                return process, port
        except OSError:
            select.select([], [], [], 0.02)
    process.kill()
    process.wait()
    raise AssertionError(f"the server did not start: exit code {process.returncode}")


def get(port: int, path: str, key: str = "") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path, headers={"X-Aip-Service-Key": key})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., int]]:
    """serve(model_dir, **env) → port; ended with the module."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(model_dir: Path, **env: str) -> int:
        process, port = start_server(model_dir, **env)
        running.append(process)
        return port

    yield begin
    for process in running:
        process.terminate()
    for process in running:
        process.wait(10)
