"""A bundle: one tar with the program and the packages of its lock file, for a machine without a network.

    aiplatform-0.1.0/                    the source, ready to run
    aiplatform-0.1.0/bundle/manifest.json    whom it fits; size and SHA-256 of every other file; first in the tar
    aiplatform-0.1.0/bundle/wheels/

An unpacked bundle is one, too: its program installs from its own folder. Made by `bundling`; read
before anything is installed, hence standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO

FORMAT = 1
FOLDER = "bundle"
MANIFEST = f"{FOLDER}/manifest.json"
WHEELS = f"{FOLDER}/wheels/"
MAX_MANIFEST_BYTES = 16 * 1024**2
BLOCK = 1024**2


class Refused(Exception):
    """A bundle that cannot be used here; the message says why and what to do."""


@dataclass(frozen=True)
class Machine:
    """What decides which wheels a machine can use."""

    python: str  # "CPython 3.11"
    kind: str  # "Linux x86_64"
    glibc: str  # the oldest version that will do: "2.28"; empty where there is another C library


@dataclass(frozen=True)
class Manifest:
    """What a bundle says of itself."""

    version: str  # of the product
    source: str  # commit, with a + where files had been changed since
    extras: list[str]  # parts other than the product itself: "gate"
    machine: Machine
    packages: list[str]  # lines of the lock, as far as wheels of them are inside
    installed_bytes: int  # size of all packages once they are installed
    files: dict[str, tuple[int, str]]  # path below the top folder → size, SHA-256 in hex

    def as_json(self) -> bytes:
        return json.dumps({"format": FORMAT, **asdict(self)}, indent=1, sort_keys=True).encode() + b"\n"

    @classmethod
    def from_json(cls, text: bytes) -> Manifest:
        """Read the output of `as_json`.

        Raises:
            ValueError: it is none, or one of another format.
        """
        data = json.loads(text)
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError("another format")
        try:
            values = {field.name: data[field.name] for field in fields(cls)}
            values["machine"] = Machine(**data["machine"])
            values["files"] = {str(path): (int(size), str(digest)) for path, (size, digest) in data["files"].items()}
        except (KeyError, TypeError) as exc:
            raise ValueError(f"{exc} is missing") from exc
        return cls(**values)

    def wheels(self) -> dict[str, tuple[int, str]]:
        """Return size and digest of wheels by their file names."""
        return {path.removeprefix(WHEELS): facts for path, facts in self.files.items() if path.startswith(WHEELS)}


def this_machine() -> Machine:
    library, version = platform.libc_ver()
    return Machine(
        f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}",
        f"{platform.system()} {platform.machine()}",
        version if library == "glibc" else "",
    )


def numbers(version: str) -> tuple[int, ...]:
    """Make a dotted version comparable."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def glibc_for(wheel: str, own: str) -> str:
    """Return the oldest glibc a wheel runs on, by its name; `own` if it was built on this host."""
    names = {"1": "2.5", "2010": "2.12", "2014": "2.17"}
    versions = []
    for tag in wheel.removesuffix(".whl").rsplit("-", 1)[-1].split("."):
        if match := re.match(r"manylinux_(\d+)_(\d+)_", tag):
            versions.append(f"{match[1]}.{match[2]}")
        elif match := re.match(r"manylinux(1|2010|2014)_", tag):
            versions.append(names[match[1]])
        elif tag == "any":
            return ""
    return min(versions, key=numbers) if versions else own


def pin_of(wheel: str) -> tuple[str, str]:
    """Return the canonical name and the public version of a wheel by its file name."""
    name, version = wheel.split("-")[:2]
    return canonical(name), version.partition("+")[0]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def without_wheel(packages: Iterable[str], wheels: Iterable[str]) -> list[str]:
    """Return the pinned lines (`name==version`) for which there is no wheel."""
    there = {pin_of(wheel) for wheel in wheels}
    return [line for line in packages if (canonical(line.partition("==")[0]), line.partition("==")[2]) not in there]


def path_from_argv(argv: list[str]) -> Path | None:
    """Return the bundle that a command line names by `--bundle`, read before commands parse their options."""
    for index, arg in enumerate(argv):
        if arg == "--":
            break
        if arg.startswith("--bundle="):
            return Path(arg.removeprefix("--bundle="))
        if arg == "--bundle" and index + 1 < len(argv):
            return Path(argv[index + 1])
    return None


class Bundle:
    """A bundle as a tar or as a folder, opened: its manifest was read, nothing else."""

    def __init__(self, path: Path) -> None:
        """Open the bundle at `path`: the tar, or the folder that it was unpacked to.

        Raises:
            Refused: there is none, or it is no bundle.
        """
        self.path = path
        self.is_folder = path.is_dir()
        try:
            self.manifest = Manifest.from_json(self._first())
        except FileNotFoundError as exc:
            raise Refused(f"{exc.filename} does not exist. Specify the bundle file, or its folder.") from exc
        except OSError as exc:
            raise Refused(f"{path} cannot be read ({exc.strerror or exc}).") from exc
        except (tarfile.TarError, EOFError, ValueError) as exc:
            raise Refused(f"{path} is not a bundle of this program, or its beginning is damaged ({exc}).") from exc

    def _first(self) -> bytes:
        if self.is_folder:
            return (self.path / MANIFEST).read_bytes()
        with tarfile.open(self.path, "r:") as tar:
            first = tar.next()
            file = tar.extractfile(first) if first is not None and first.isfile() else None
            if first is None or file is None or first.size > MAX_MANIFEST_BYTES:
                raise ValueError("no manifest at its beginning")
            self.top, _slash, inside = first.name.partition("/")
            if inside != MANIFEST:
                raise ValueError(f"{first.name} at its beginning")
            return file.read()

    def see_that_it_fits(self, packages: list[str], version: str, *, gate: bool = False) -> None:
        """See that Python, machine and source of here are those that the bundle was made for.

        Args:
            packages: what is to be installed, as lines of the lock.
            version: of the source that is here.
            gate: whether `packages` holds the gate's, too.

        Raises:
            Refused: they are not; all reasons at once.
        """
        here, there = this_machine(), self.manifest.machine
        problems = []
        if here.python != there.python:
            command = f"python{there.python.split()[-1]}"
            problems.append(
                f"It is for {there.python}, this is {here.python}: start it with {command}, or create a bundle "
                "with this Python on a computer with a network."
            )
        if here.kind != there.kind:
            problems.append(f"The bundle is for {there.kind}, this is {here.kind}: create one on such a computer.")
        elif there.glibc and numbers(here.glibc) < numbers(there.glibc):
            problems.append(
                f"The packages need glibc {there.glibc}, here is {here.glibc or 'another C library'}: create one "
                "on a computer like this."
            )
        if gate and "gate" not in self.manifest.extras:
            problems.append(
                "The bundle has no packages of the gate (pytest and others), so `manage.py test` cannot run from "
                "it: create one with `manage.py bundle --extra gate`."
            )
        elif missing := [line for line in packages if line not in self.manifest.packages]:
            problems.append(self._other_source(missing, version))
        if problems:
            raise Refused("\n".join([f"{self.path} does not fit this system.", *problems]))

    def _other_source(self, missing: list[str], version: str) -> str:
        """Say why the lock of the source that is here wants more than the bundle has."""
        there = self.manifest.version
        age = "older" if numbers(version) < numbers(there) else "newer" if numbers(version) > numbers(there) else ""
        compared = (
            f"{version}, {age} than the bundle's {there}," if age else f"{version} as in the bundle, but modified:"
        )
        remedy = (
            f"Remove {self.path / FOLDER} to install from the package index instead"
            if self.is_folder
            else f"Use the source inside (tar -xf {self.path}; then {self.top}/manage.py)"
        )
        return (
            f"The source here is {compared} and needs {some(missing)}. {remedy}, or create a bundle from this source."
        )

    @contextmanager
    def wheels(self, temp_root: Path) -> Iterator[Path]:
        """Yield a folder with all wheels, each verified by its checksum.

        Args:
            temp_root: a folder on the disk where those of a tar are laid while this lasts.

        Raises:
            Refused: a file is missing, too much or not what was packed.
        """
        if self.is_folder:
            folder = self.path / WHEELS
            for name, facts in self.manifest.wheels().items():
                try:
                    with (folder / name).open("rb") as file:
                        self._copy(name, file, None, facts)
                except FileNotFoundError as exc:
                    raise self._damaged(f"{exc.filename} is missing") from exc
            yield folder
            return
        folder = Path(tempfile.mkdtemp(prefix=".aiplatform-wheels-", dir=temp_root))
        try:
            self._unpack_wheels(folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _unpack_wheels(self, folder: Path) -> None:
        todo = self.manifest.wheels()
        prefix = f"{self.top}/{WHEELS}"
        try:
            with tarfile.open(self.path, "r:") as tar:
                for member in tar:
                    name = member.name.removeprefix(prefix)
                    if not member.name.startswith(prefix) or name not in todo or "/" in name:
                        continue
                    file = tar.extractfile(member) if member.isfile() else None
                    if file is None:
                        raise self._damaged(f"{member.name} is not a file")
                    with (folder / name).open("xb") as out:
                        self._copy(name, file, out, todo.pop(name))
        except (tarfile.TarError, EOFError) as exc:
            raise self._damaged(str(exc)) from exc
        if todo:
            raise self._damaged(f"{some(sorted(todo))} is missing")

    def _copy(self, name: str, file: IO[bytes], out: IO[bytes] | None, facts: tuple[int, str]) -> None:
        digest, size = hashlib.sha256(), 0
        while block := file.read(BLOCK):
            digest.update(block)
            size += len(block)
            if out is not None:
                out.write(block)
        if (size, digest.hexdigest()) != facts:
            raise self._damaged(f"{name} differs from the packed file")

    def _damaged(self, what: str) -> Refused:
        return Refused(f"{self.path} is damaged: {what}. Copy the bundle to this computer again.")

    def changed_sources(self, root: Path) -> list[str]:
        """Return the files of the source below `root` that are not what was packed."""
        changed = []
        for path, (size, digest) in self.manifest.files.items():
            if path.startswith(f"{FOLDER}/"):
                continue
            try:
                content = (root / path).read_bytes()
            except OSError:
                changed.append(path)
                continue
            if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
                changed.append(path)
        return changed

    def room_needed(self) -> int:
        """Return how many bytes an installation takes while it goes on."""
        unpacked = 0 if self.is_folder else sum(size for size, _digest in self.manifest.wheels().values())
        compiled = self.manifest.installed_bytes // 5  # Python's compiled file of each module
        return self.manifest.installed_bytes + compiled + unpacked


def find(path: Path | None, root: Path) -> Bundle | None:
    """Open the bundle that the user named, or the one that the program at `root` was unpacked from.

    Raises:
        Refused: it cannot be read.
    """
    if path is not None:
        return Bundle(path.expanduser().absolute())
    return Bundle(root) if (root / MANIFEST).exists() else None


def free_bytes(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def some(things: list[str]) -> str:
    """Name the first three of many."""
    shown = ", ".join(things[:3])
    return shown if len(things) <= 3 else f"{shown} and {len(things) - 3} more"
