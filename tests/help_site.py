"""The help site, built once for all tests until its sources change."""

from __future__ import annotations

import fcntl
from functools import cache
from pathlib import Path

from tests.architecture.code import ROOT


@cache
def built_site() -> Path:
    """Return a folder as `AIP_DATA_ROOT/help`, with the site of the present sources in it."""
    from aiplatform.pages.help.build import build_site

    folder = ROOT / ".test_cache" / "help"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "help.lock").open("w") as lock:  # other processes wait for the first one
        fcntl.flock(lock, fcntl.LOCK_EX)
        build_site(folder)
    return folder
