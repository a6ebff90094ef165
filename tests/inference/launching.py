"""Model servers as jobs would start them; knows no platform, so that benches start them as well."""

from __future__ import annotations

import http.client
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from tests.running import free_port

ROOT = Path(__file__).parents[2]


def start_server(model_dir: Path, **env: str) -> tuple[subprocess.Popen[bytes], int]:
    """A model server as a job would start it; returns once it answers ready."""
    variables = {"AIP_MODEL_DIR": str(model_dir), "AIP_MODEL_NAME": "tiny", **env}
    return launch([sys.executable, "-m", "inference.serving.server"], ROOT, variables)


def launch(argv: list[str], cwd: Path, env: dict[str, str]) -> tuple[subprocess.Popen[bytes], int]:
    """Start a server's command at a free port with nothing else in its environment; wait until it is ready."""
    port = free_port()
    variables = {"PATH": os.environ["PATH"], "AIP_PORT": str(port), **env}
    process = subprocess.Popen(argv, cwd=cwd, env=variables)
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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={"X-Aip-Service-Key": key})
        return connection.getresponse().status
    finally:
        connection.close()
