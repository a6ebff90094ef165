"""Make .venv from the lock file and run there. Standard library only.

With everything in place this costs one small file read. `AIP_BOOTSTRAP=0`
turns it off: then the current interpreter must have the packages. With a bundle
(`--bundle FILE`, or the program lies in an unpacked one) nothing asks a network.
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

from aiplatform import __version__
from aiplatform.cli import bundle as bundles

LOCK = "requirements.lock"
HASHES = "requirements.hashes"
TESTS_FROM_HERE = "# --- for the gate (manage.py test) ---"
GIB = 1024**3


def ensure(root: Path, *, with_tests: bool, bundle_path: Path | None = None) -> None:
    """Return only inside a complete environment; otherwise build it and restart this program in it.

    Args:
        with_tests: also install what the gate needs.
        bundle_path: the bundle to install from; without one, that which `root` was unpacked from, or the package index.
    """
    packages = wanted((root / LOCK).read_text(), with_tests=with_tests)
    venv, python = root / ".venv", root / ".venv" / "bin" / "python"
    stamp = hashlib.sha256("\n".join(packages).encode()).hexdigest()
    if not is_ready(venv, stamp):
        (root / ".venv.lock").touch()
        with (root / ".venv.lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # a second command that starts now waits instead of spoiling it
            if not is_ready(venv, stamp):
                try:
                    bundle = bundles.find(bundle_path, root)
                    if bundle is None:
                        build(venv, packages, root / HASHES)
                    else:
                        build_from(bundle, venv, packages, gate=with_tests)
                except bundles.Refused as exc:
                    sys.exit(str(exc))
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


def read_hashed(hashes: Path) -> list[str]:
    """Return the pinned requirements of requirements.hashes, whose files pip compares with the SHA-256 named there."""
    lines = (line.split("#")[0].strip() for line in hashes.read_text().replace("\\\n", "").splitlines())
    return [line.split()[0] for line in lines if line]


def read_stamps(venv: Path) -> set[str]:
    try:
        return set((venv / "aiplatform.stamps").read_text().split())
    except OSError:
        return set()


def is_ready(venv: Path, stamp: str) -> bool:
    return (venv / "bin" / "python").exists() and stamp in read_stamps(venv)


def build(venv: Path, packages: list[str], hashes: Path) -> None:
    """Make the environment and install `packages`; every failure ends with a message.

    Args:
        hashes: file with the SHA-256 of some of the packages, see `install`.
    """
    started = time.monotonic()
    if importlib.util.find_spec("venv") is None or importlib.util.find_spec("ensurepip") is None:
        sys.exit(
            "This Python has no venv module. Install it (Debian, Ubuntu: apt install python3-venv) and run the "
            "same command again; or install the packages of requirements.lock yourself and set AIP_BOOTSTRAP=0."
        )
    see_room(venv.parent, 3 * GIB)
    make(venv)
    log(f"Installing {len(packages)} packages once; this takes a few minutes …")
    install(venv / "bin" / "python", packages, hashes)
    note_origin(venv, "the package index")
    log(f"Ready after {time.monotonic() - started:.0f} s.")


def build_from(bundle: bundles.Bundle, venv: Path, packages: list[str], *, gate: bool) -> None:
    """Make the environment from a bundle alone: no network, and no pip of this Python.

    Raises:
        bundles.Refused: the bundle does not fit, or is damaged.
    """
    started = time.monotonic()
    if importlib.util.find_spec("venv") is None:
        sys.exit("This Python has no venv module. Install it (Debian, Ubuntu: apt install python3-venv) and try again.")
    bundle.see_that_it_fits(packages, __version__, gate=gate)
    see_room(venv.parent, bundle.room_needed())
    if bundle.is_folder and (changed := bundle.changed_sources(bundle.path)):
        log(f"Warning: modified since packing: {bundles.some(changed)}.")
    log(f"Verifying the contents of {bundle.path} …")
    with bundle.wheels(venv.parent) as wheels:
        make(venv, "--without-pip")
        log(f"Installing {len(packages)} packages from it once; this takes a minute or two …")
        own = next(wheels.glob("pip-*.whl"))
        arguments = ["--no-index", "--find-links", str(wheels), f"pip=={bundles.pin_of(own.name)[1]}", *packages]
        python = venv / "bin" / "python"
        pip(python, arguments, total=len(packages) + 1, what="the packages of the bundle", own=own)
    note_origin(venv, f"the bundle {bundle.path.name} (aiplatform {bundle.manifest.version})")
    log(f"Ready after {time.monotonic() - started:.0f} s.")


def see_room(folder: Path, needed: int) -> None:
    """End with a message where the packages would fill the disk."""
    free = bundles.free_bytes(folder)
    if free < needed:
        sys.exit(
            f"{free / GIB:.1f} GiB are free at {folder}; the installation needs {needed / GIB:.1f}. Free space "
            "and run the same command again."
        )


def make(venv: Path, *options: str) -> None:
    """Make an empty environment unless there is one, and pip in it where no option forbids that."""
    if (venv / "bin" / "python").exists() and (options or (venv / "bin" / "pip").exists()):
        return
    log(f"Creating {venv} …")
    command = [sys.executable, "-m", "venv", *options, str(venv)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        sys.exit(
            f"Could not create {venv}: {(made.stderr or made.stdout).strip()[-400:]}\nOn Debian and Ubuntu this "
            "usually means: apt install python3-venv."
        )


def note_origin(venv: Path, origin: str) -> None:
    """Remember where packages came from; `doctor` tells it."""
    with (venv / "aiplatform.origin").open("a") as file:
        file.write(f"{origin}\n")


def origin(venv: Path) -> str:
    """Return the origin of an environment's packages; empty if this program did not build it."""
    try:
        lines = (venv / "aiplatform.origin").read_text().splitlines()
    except OSError:
        return ""
    return ", then ".join(line for index, line in enumerate(lines) if line not in lines[:index])


def install(python: Path, packages: list[str], hashes: Path) -> None:
    """Install exactly `packages`: those of `hashes`, then torch from AIP_TORCH_INDEX_URL if that is set, then the rest.

    pip checks hashes of all packages of a call or of none, and the files of one version of torch differ, so packages
    with hashes have a call of their own. The last call finds them installed and adds what they depend on.

    A machine without a GPU can name an index with CPU builds there and saves gigabytes; where pip
    already offers a CPU file of the pinned version, that is what it takes.
    """
    torch = [line for line in packages if re.match(r"torch==", line)]
    rest = [line for line in packages if line not in torch]
    index = os.environ.get("AIP_TORCH_INDEX_URL", "")
    if hashed := read_hashed(hashes):
        pip(python, with_hashes(hashes), total=len(hashed), what="the packages with hashes")
    if torch:
        pip(python, [*torch, *(["--extra-index-url", index] if index else [])], total=0, what=torch[0])
    pip(python, rest, total=len(rest), what="other")


def with_hashes(hashes: Path) -> list[str]:
    """Return the arguments by which pip takes only files whose SHA-256 the file names."""
    return ["--require-hashes", "--no-deps", "--requirement", str(hashes)]


def pip(
    python: Path, arguments: list[str], *, total: int, what: str, verb: str = "install", own: Path | None = None
) -> None:
    """Run pip with one line of progress; a failure ends with pip's own last lines and a remedy.

    Args:
        own: a wheel of pip to run instead of the one installed; settings for pip on this machine then do not count.
    """
    program = ["-m", "pip"] if own is None else [f"{own}/pip"]
    command = [str(python), *program, verb, "--no-input", "--disable-pip-version-check", *arguments]
    environment = dict(os.environ)
    if own is not None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        environment["PIP_CONFIG_FILE"] = os.devnull
    tail: list[str] = []
    count = 0
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        try:
            for line in process.stdout or ():
                tail = [*tail[-30:], line.rstrip()]
                match = re.match(r"(?:Collecting|Requirement already satisfied:) ([^\s(]+)", line)
                if match:
                    count += 1
                    progress(f"[{min(count, total)}/{total}] {match[1]}" if total else match[1])
        except BaseException:  # pip must not continue after this process
            process.kill()
            raise
        code = process.wait()
    progress("")
    if code == 0:
        return
    text = "\n".join(tail)
    if "No space left" in text:
        remedy = "The disk is full. Free space and run the same command; it continues where it stopped."
    elif "DO NOT MATCH THE HASHES" in text:
        remedy = (
            "The package index delivered a file that differs from the tested one. Use another index "
            f"(PIP_INDEX_URL), or install the packages yourself and set AIP_BOOTSTRAP=0; {HASHES} names "
            "replacements for each of them."
        )
    elif own is not None:
        remedy = "The network was not used. Fix the problem named by pip above, or create the bundle again."
    elif re.search(
        r"NewConnectionError|Temporary failure in name|Network is unreachable|ConnectTimeout|No matching", text
    ):
        remedy = (
            "The package index does not respond or lacks this package. Check the network or proxy (HTTPS_PROXY), "
            "or point pip at your own mirror or wheel folder (PIP_INDEX_URL, PIP_FIND_LINKS), then run the same "
            "command. Without a network: --bundle FILE, a file created by `manage.py bundle` on a computer with "
            "a network."
        )
    else:
        remedy = "Fix the problem named by pip above and run the same command; it continues where it stopped."
    act = "fetch" if verb == "wheel" else verb
    sys.exit(f"{text}\n\nCould not {act} {what}. {remedy}")


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
