"""A throw-away PostgreSQL for tests: Debian's programs, a service user, a socket folder, gone afterwards."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.running import free_port


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


def apt(*packages: str) -> None:
    """Install Debian packages where that is possible; who asked looks whether they are there."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        patient = ["apt-get", "-o", "DPkg::Lock::Timeout=200"]  # another step may be installing too
        for command in ([*patient, "update"], [*patient, "install", "-y", *packages]):
            with contextlib.suppress(subprocess.TimeoutExpired):  # a network that never answers
                subprocess.run(
                    command, env=environment, check=False, timeout=240,
                    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                )  # fmt: skip


@contextlib.contextmanager
def server() -> Iterator[str | None]:
    """A database URL of a fresh server, or None where PostgreSQL cannot be had."""
    programs = _programs()
    if programs is None:
        apt("postgresql")
        programs = _programs()
    if programs is None:
        yield None
        return
    user = None
    if os.geteuid() == 0:  # initdb refuses root
        user = next((name for name in ("postgres", "nobody") if _exists(name)), None)
    folder = Path(tempfile.mkdtemp(prefix="aip-pg-"))
    if user:
        shutil.chown(folder, user)
    port = free_port()

    def run(*command: str) -> None:
        subprocess.run(command, check=True, user=user, stdout=subprocess.DEVNULL, cwd=folder)

    run(str(programs / "initdb"), "-D", str(folder / "db"), "-A", "trust", "-U", "aip", "-E", "UTF8", "--no-sync")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    log = str(folder / "log")
    run(str(programs / "pg_ctl"), "-D", str(folder / "db"), "-l", log, "-o", options, "-w", "start")
    run(str(programs / "createdb"), "-h", str(folder), "-p", str(port), "-U", "aip", "aip")
    try:
        yield f"postgresql://aip@127.0.0.1:{port}/aip"
    finally:
        run(str(programs / "pg_ctl"), "-D", str(folder / "db"), "-m", "immediate", "stop")
        time.sleep(0.1)  # pause: its processes end
        shutil.rmtree(folder, ignore_errors=True)


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True
