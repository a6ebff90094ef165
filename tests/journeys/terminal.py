"""`aip` as a person calls it at a terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.journeys.up import ROOT


def aip(url: str, token: str, folder: Path, *words: str) -> subprocess.Popen[str]:
    """Start the client in a folder, without any setting of this machine's."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AIP_")}
    env |= {"AIP_URL": url, "AIP_TOKEN": token, "PYTHONPATH": str(ROOT), "XDG_CONFIG_HOME": str(folder.parent / "home")}
    argv = [sys.executable, "-m", "aiplatform.client", *words]
    return subprocess.Popen(
        argv, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
