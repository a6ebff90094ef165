"""`manage.py bundle`: make one file that installs the platform on machines without a network.

Run it on a machine with a network, of the same kind and with the same Python as those that shall use it. What such a
file holds: `aiplatform/cli/bundle.py`.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from importlib.metadata import version as version_of
from pathlib import Path

from aiplatform import __version__
from aiplatform.cli import bootstrap
from aiplatform.cli.bundle import (
    MANIFEST,
    WHEELS,
    Bundle,
    Manifest,
    Refused,
    free_bytes,
    glibc_for,
    numbers,
    some,
    this_machine,
    without_wheel,
)

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("gate",)
FREE_BYTES = (
    2 * bootstrap.GIB
)  # with PyTorch for CPUs; wheels for CUDA are 3 GiB, and for a moment they are there twice


def main(argv: list[str]) -> int:
    """Make the bundle and say where it is, how large, and what to do with it."""
    parser = argparse.ArgumentParser(prog="manage.py bundle", description=__doc__)
    parser.add_argument(
        "--to", type=Path, default=Path(), metavar="FOLDER", help="target folder (default: current folder)"
    )
    parser.add_argument(
        "--extra", action="append", choices=EXTRAS, default=[], help="gate: include the packages for `manage.py test`"
    )
    options = parser.parse_args(argv)
    started = time.monotonic()
    # an end from outside cleans up, too
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("Stopped before the bundle was complete; nothing is kept."))
    try:
        made = make(ROOT, options.to.expanduser().absolute(), extras=sorted(set(options.extra)))
    except Refused as exc:
        print(exc, file=sys.stderr)
        return 1
    except OSError as exc:
        print(f"{exc.filename or options.to}: {exc.strerror or exc}. No bundle was created.", file=sys.stderr)
        return 1
    print(f"{made}: {made.stat().st_size / 1024**2:.0f} MiB, created in {time.monotonic() - started:.0f} s.")
    print("On a computer without a network, one command unpacks it and one starts it:")
    print(f"  tar -xf {made.name}\n  python3 {top()}/manage.py up")
    return 0


def top() -> str:
    return f"aiplatform-{__version__}"


def make(root: Path, to: Path, *, extras: list[str]) -> Path:
    """Make a bundle of the source at `root` in the folder `to`; the file gets its name once it is complete.

    Raises:
        Refused: the source is no clone, a package has no wheel, or the disk has no room.
        OSError: the folder cannot be written.
    """
    to.mkdir(parents=True, exist_ok=True)
    if free_bytes(to) < FREE_BYTES:
        raise Refused(f"{free_bytes(to) / bootstrap.GIB:.1f} GiB are free at {to}; a bundle needs 2, or 7 with CUDA.")
    names, commit, when = sources(root)
    lines = bootstrap.wanted((root / bootstrap.LOCK).read_text(), with_tests="gate" in extras)
    work = Path(tempfile.mkdtemp(prefix=".aiplatform-bundle-", dir=to))
    try:
        wheels = fetch(work / "wheels", lines, root / bootstrap.HASHES)
        manifest = describe(root, names, commit, wheels, lines, extras)
        complete = work / "bundle.tar"
        pack(complete, manifest, root, wheels, when)
        tag = "-".join([f"cp{''.join(platform.python_version_tuple()[:2])}", platform.system().lower()])
        name = "-".join([top(), *extras, tag, platform.machine()])
        return complete.replace(to / f"{name}.tar")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def sources(root: Path) -> tuple[list[str], str, int]:
    """Return the files of the source in order, its commit (with a + where files were changed) and its time.

    In an unpacked bundle these are the files that came with it; elsewhere those that git tracks, as they are now.

    Raises:
        Refused: it is neither a clone nor an unpacked bundle.
    """
    if (root / MANIFEST).exists():
        bundle = Bundle(root)
        names = sorted(path for path in bundle.manifest.files if not path.startswith(WHEELS))
        changed = "+" if bundle.changed_sources(root) else ""
        when = int(time.time()) if changed else int((root / MANIFEST).stat().st_mtime)
        return names, f"{bundle.manifest.source.rstrip('+')}{changed}", when
    names = sorted(name for name in _git(root, "ls-files", "-z").split("\0") if (root / name).is_file())
    commit, changed = _git(root, "rev-parse", "HEAD").strip(), _git(root, "status", "--porcelain", "-uno").strip()
    if changed:
        bootstrap.log("Files were changed since the last commit; they are included as they are now.")
    if unknown := _git(root, "ls-files", "--others", "--exclude-standard").split():
        bootstrap.log(f"Untracked files are not included: {some(unknown)}.")
    when = int(time.time()) if changed else int(_git(root, "log", "-1", "--format=%ct"))
    return names, f"{commit}{'+' if changed else ''}", when


def _git(root: Path, *args: str) -> str:
    try:
        result = subprocess.run(["git", "-C", str(root), *args], capture_output=True, text=True, check=False)
    except FileNotFoundError as exc:
        raise Refused("git is not installed, so the files of the program cannot be listed.") from exc
    if result.returncode:
        raise Refused(f"{root} is neither a clone nor an unpacked bundle: {result.stderr.strip()}")
    return result.stdout


def fetch(folder: Path, lines: list[str], hashes: Path) -> list[Path]:
    """Have pip lay a wheel of each pinned line, and of what these need beyond the lock, into `folder`; in order.

    pip takes them from where an installation would take them, torch from AIP_TORCH_INDEX_URL, and builds what is
    offered as source only. A CUDA build of torch needs packages that a lock written with a CPU build does not name.

    Args:
        hashes: file with the SHA-256 of some of the packages; pip refuses other files of these.

    Raises:
        Refused: some line has none.
    """
    folder.mkdir()
    constraints = folder.with_name("constraints.txt")
    constraints.write_text("\n".join(lines))
    common = ["--wheel-dir", str(folder), "--constraint", str(constraints), "--find-links", str(folder)]
    torch = [line for line in lines if line.startswith("torch==")]
    python, index = Path(sys.executable), os.environ.get("AIP_TORCH_INDEX_URL", "")
    bootstrap.log(f"Downloading {len(lines)} packages; this takes a few minutes …")
    if torch:
        other = ["--extra-index-url", index] if index else []
        bootstrap.pip(python, [*common, *torch, *other], total=0, what=torch[0], verb="wheel")
    hashed = bootstrap.read_hashed(hashes)
    if hashed:
        arguments = ["--wheel-dir", str(folder), *bootstrap.with_hashes(hashes)]
        bootstrap.pip(python, arguments, total=len(hashed), what="the packages with hashes", verb="wheel")
    rest = [*(line for line in lines if line not in [*torch, *hashed]), f"pip=={version_of('pip')}"]
    bootstrap.pip(python, [*common, *rest], total=len(rest), what="other", verb="wheel")
    wheels = sorted(folder.glob("*.whl"))
    if missing := without_wheel([*hashed, *torch, *rest], [wheel.name for wheel in wheels]):
        raise Refused(f"pip delivered no wheel of {some(missing)}. Nothing was created.")
    return wheels


def describe(
    root: Path, names: list[str], commit: str, wheels: list[Path], lines: list[str], extras: list[str]
) -> Manifest:
    """Write down what goes in, and whom it fits."""
    here = this_machine()
    needs = [needed for wheel in wheels if (needed := glibc_for(wheel.name, here.glibc))]
    glibc = max(needs, key=numbers, default=here.glibc)
    files = {name: _seal(root / name) for name in names if name != MANIFEST}
    files |= {f"{WHEELS}{wheel.name}": _seal(wheel) for wheel in wheels}
    return Manifest(
        version=__version__,
        source=commit,
        extras=extras,
        machine=type(here)(here.python, here.kind, glibc),
        packages=lines,
        installed_bytes=sum(_installed(wheel) for wheel in wheels),
        files=files,
    )


def _seal(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        return path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _installed(wheel: Path) -> int:
    with zipfile.ZipFile(wheel) as archive:
        return sum(member.file_size for member in archive.infolist())


def pack(to: Path, manifest: Manifest, root: Path, wheels: list[Path], when: int) -> None:
    """Write the tar: the manifest, the source, the wheels; the same input gives the same bytes.

    Every file bears the commit's time, not one constant: Python recognises a changed module by time and size.
    """
    places = {f"{WHEELS}{wheel.name}": wheel for wheel in wheels}
    with to.open("xb") as out, tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        text = manifest.as_json()
        tar.addfile(_member(MANIFEST, len(text), when), io.BytesIO(text))
        for name, (size, _digest) in sorted(manifest.files.items(), key=lambda file: (file[0] in places, file[0])):
            path = places.get(name, root / name)
            member = _member(name, size, when)
            member.mode = 0o755 if path.stat().st_mode & 0o100 and name not in places else 0o644
            with path.open("rb") as file:
                tar.addfile(member, file)
        tar.close()
        out.flush()
        os.fsync(out.fileno())


def _member(name: str, size: int, when: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(f"{top()}/{name}")
    member.size, member.mtime, member.mode = size, when, 0o644
    return member
