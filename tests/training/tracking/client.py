"""MLflow's own client, in an environment of its own that is made once and kept: it is no package of the platform."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.migrated import KEPT

PACKAGES = (
    "mlflow-skinny==3.17.2",
    "scikit-learn==1.9.1",
    "pandas==3.1.1",
    "matplotlib==3.11.2",
    "skops==0.16.0",
    "pillow==13.0.0",
)
_SEAL = hashlib.sha256(" ".join([sys.version, *PACKAGES]).encode()).hexdigest()[:16]
HOME = KEPT / f"mlflow-{_SEAL}"
PYTHON = HOME / "bin" / "python"


@functools.cache
def why_not_installed() -> str:
    """Install the client unless it is there; "" where it is, else what hinders it."""
    KEPT.mkdir(exist_ok=True)
    with (KEPT / "mlflow.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two workers that both found nothing would each clear what the other installs
        return _installed()


def _installed() -> str:
    if (HOME / "done").exists():
        return ""
    shutil.rmtree(HOME, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(HOME)], check=True)
    words = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", *PACKAGES]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=280, check=False)
    except subprocess.TimeoutExpired:
        return "pip did not install MLflow's client within 280 s"
    if done.returncode:
        return f"no package index offers MLflow's client: {done.stderr.strip().splitlines()[-1:]}"
    (HOME / "done").write_text("")
    return ""


def run(script: str, *, address: str, token: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script with the client, told where to report by variables."""
    plain = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    told = {
        "MLFLOW_TRACKING_URI": address,
        "MLFLOW_TRACKING_TOKEN": token,
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0",
        "MPLBACKEND": "agg",
    }
    return subprocess.run(
        [str(PYTHON), "-W", "ignore", "-c", script],
        env=plain | told | variables, cwd=folder, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
