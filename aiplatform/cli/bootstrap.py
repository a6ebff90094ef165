"""Make .venv from the lock file and run there. Standard library only.

With everything in place this costs one small file read. `AIP_BOOTSTRAP=0`
turns it off: then the current interpreter must have the packages.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

LOCK = "requirements.lock"
TESTS_FROM_HERE = "# --- for the gate (manage.py test) ---"


def ensure(root: Path, *, with_tests: bool) -> None:
    """Return only inside a complete environment; otherwise build it and start this program again there.

    Args:
        with_tests: also install what the gate needs.
    """
    packages = wanted((root / LOCK).read_text(), with_tests=with_tests)
    venv, python = root / ".venv", root / ".venv" / "bin" / "python"
    stamp = hashlib.sha256("\n".join(packages).encode()).hexdigest()
    if not is_ready(venv, stamp):
        (root / ".venv.lock").touch()
        with (root / ".venv.lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second command that starts now waits instead of spoiling it
            if not is_ready(venv, stamp):
                build(venv, packages)
                done = read_stamps(venv) | {stamp}
                if with_tests:
                    plain = wanted((root / LOCK).read_text(), with_tests=False)
                    done.add(hashlib.sha256("\n".join(plain).encode()).hexdigest())
                (venv / "aiplatform.stamps").write_text("\n".join(sorted(done)))
    if Path(sys.prefix).resolve() != venv.resolve():
        os.execv(python, [str(python), *sys.argv])


def wanted(lock: str, *, with_tests: bool) -> list[str]:
    """Pinned requirements of a lock file's text, in order; the part of the gate only where wanted."""
    if not with_tests:
        lock = lock.split(TESTS_FROM_HERE, maxsplit=1)[0]
    lines = (line.split("#")[0].strip() for line in lock.splitlines())
    return [line for line in lines if line]


def read_stamps(venv: Path) -> set[str]:
    try:
        return set((venv / "aiplatform.stamps").read_text().split())
    except OSError:
        return set()


def is_ready(venv: Path, stamp: str) -> bool:
    return (venv / "bin" / "python").exists() and stamp in read_stamps(venv)


def build(venv: Path, packages: list[str]) -> None:
    """Make the environment and install `packages`; every failure ends with a message."""
    started = time.monotonic()
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            "This Python has no venv module. Install it (Debian, Ubuntu: apt install python3-venv) and run the "
            "same command again; or install the packages of requirements.lock yourself and set AIP_BOOTSTRAP=0."
        )
    free = os.statvfs(venv.parent)
    if free.f_bavail * free.f_frsize < 3 * 1024**3:
        sys.exit(f"Less than 3 GiB are free at {venv.parent}; the packages need about 2. Make room and run it again.")
    if not (venv / "bin" / "python").exists():
        say(f"Making {venv} …")
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, check=False)
        if made.returncode:
            sys.exit(
                f"Could not make {venv}: {(made.stderr or made.stdout).strip()[-400:]}\n"
                "On Debian and Ubuntu this usually means: apt install python3-venv."
            )
    say(f"Installing {len(packages)} packages, once; this takes some minutes …")
    install(venv / "bin" / "python", packages)
    say(f"Ready after {time.monotonic() - started:.0f} s.")


def install(python: Path, packages: list[str]) -> None:
    """Install exactly `packages`, torch first: from AIP_TORCH_INDEX_URL where that is set.

    A machine without a GPU can name an index with CPU builds there and saves gigabytes; where pip
    already offers a CPU file of the pinned version, that is what it takes.
    """
    torch = [line for line in packages if re.match(r"torch==", line)]
    rest = [line for line in packages if line not in torch]
    index = os.environ.get("AIP_TORCH_INDEX_URL", "")
    if torch:
        pip(python, [*torch, *(["--extra-index-url", index] if index else [])], total=0, what=torch[0])
    pip(python, rest, total=len(rest), what="the rest")


def pip(python: Path, arguments: list[str], *, total: int, what: str) -> None:
    """Run pip with one line of progress; a failure ends with pip's own last lines and a remedy."""
    command = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check", *arguments]
    tail: list[str] = []
    count = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout or ():
            tail = [*tail[-30:], line.rstrip()]
            match = re.match(r"(?:Collecting|Requirement already satisfied:) ([^\s(]+)", line)
            if match:
                count += 1
                progress(f"[{min(count, total)}/{total}] {match[1]}" if total else match[1])
        code = process.wait()
    progress("")
    if code == 0:
        return
    text = "\n".join(tail)
    if re.search(
        r"NewConnectionError|Temporary failure in name|Network is unreachable|ConnectTimeout|No matching", text
    ):
        remedy = (
            "The package index did not answer or lacks this package. Check the network or proxy (HTTPS_PROXY), or "
            "point pip at your own mirror or wheel folder (PIP_INDEX_URL, PIP_FIND_LINKS), then run the same command."
        )
    elif "No space left" in text:
        remedy = "The disk is full. Make room and run the same command; it goes on where it stopped."
    else:
        remedy = "Mend what pip names above and run the same command; it goes on where it stopped."
    sys.exit(f"{text}\n\nCould not install {what}. {remedy}")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
