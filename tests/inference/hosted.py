"""Folders of services for a host, as the platform makes them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from inference.serving.server.host import ABOUT, MODEL


def place_service(root: Path, name: str, make: Callable[[Path], object], **env: str) -> Path:
    """Create a service of a model, then move it into place; replaces an existing one."""
    new, home = root / f".{name}.new", root / name
    (new / MODEL).mkdir(parents=True)
    make(new / MODEL)
    (new / ABOUT).write_text(json.dumps({"env": {"AIP_MODEL_NAME": "tiny", **env}}))
    if home.exists():
        shutil.rmtree(home)
    os.rename(new, home)
    return home
