"""Tools from npm, pinned by lock files, kept beside the migrated database: for scripts Biome and TypeScript."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
KEPT = HERE.parents[1] / ".test_cache"
OLDEST_NODE = 20  # the first with --import, whose test runner is stable


def node() -> str | None:
    """Node, where it is new enough for the unit tests."""
    program = shutil.which("node")
    if program is None:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.", said)
    return program if version and int(version[1]) >= OLDEST_NODE else None


class Tools(NamedTuple):
    """Programs of the installed packages."""

    biome: Path
    tsc: Path


def install() -> Tools | None:
    """Install the tools unless they are there; None where npm cannot."""
    packages = packages_of(HERE, "scripts", "the linter and the type checker of scripts")
    if packages is None:
        return None
    biome = next(packages.glob("@biomejs/cli-*/biome"), None)
    return Tools(biome, packages / ".bin" / "tsc") if biome else None


def packages_of(here: Path, name: str, what: str) -> Path | None:
    """The node_modules of the package-lock.json in `here`, installed where they are not yet; None where npm cannot.

    Args:
        name: of the kept folder, with the lock's sum behind it.
        what: what is installed, for people.
    """
    seal = hashlib.sha256((here / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = KEPT / f"{name}-{seal}"
    if not folder.exists():
        npm = shutil.which("npm")
        if npm is None or node() is None or not _installed(npm, here, folder, what):
            return None
        for old in KEPT.glob(f"{name}-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
    return folder / "node_modules"


def _installed(npm: str, here: Path, folder: Path, what: str) -> bool:
    """Install into a folder beside and rename it, so that what is there is whole."""
    print(f"Installing {what} …", flush=True)
    KEPT.mkdir(exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".npm-", dir=KEPT))
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copyfile(here / name, fresh / name)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1"]
        if subprocess.run(command, cwd=fresh, env=os.environ | {"NO_UPDATE_NOTIFIER": "1"}, check=False).returncode:
            return False
        if not folder.exists():  # another gate may have been quicker
            fresh.rename(folder)
        return True
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
