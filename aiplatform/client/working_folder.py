"""The files of a folder that are its source: what git would take, without caches and environments."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from aiplatform.client import output
from aiplatform.client.errors import USAGE, ClientError
from aiplatform.client.packing import Packed

NEVER = {".git", ".hg", ".svn", ".venv", "venv", "__pycache__", "node_modules", ".mypy_cache", "aip-outputs"}
MAX_FILES, MAX_BYTES = 20_000, 2 << 30  # the platform takes no more
LISTING = ["ls-files", "-z", "--others", "--exclude-standard"]


def pack(folder: Path) -> Packed | None:
    """The source of a folder as a tar; None where there is none.

    Raises:
        ClientError: no folder, or more than the platform takes.
    """
    if not folder.is_dir():
        raise ClientError(f"{folder} is not a folder.", USAGE)
    top, files, size = folder.resolve().name or "code", [], 0
    for name in names(folder):
        file = folder / name
        files.append((f"{top}/{name}", file))
        size += file.stat().st_size
        if len(files) > MAX_FILES or size > MAX_BYTES:
            raise ClientError(
                f"{folder.resolve()} holds more than {MAX_FILES:,} files or 2 GiB of source. Name a smaller folder "
                "with --code, leave files out by a .gitignore, or bring no code with --no-code.",
                USAGE,
            )
    return Packed(files, f"{top}.tar") if files else None


def names(folder: Path) -> Iterator[str]:
    """Paths of the source files, relative to the folder, links left out."""
    listed = _by_git(folder)
    if listed is None:
        if (folder / ".gitignore").exists():
            output.say("git is not installed, so .gitignore is ignored.")
        listed = list(_walked(folder))
    for name in sorted(set(listed)):
        file = folder / name
        if NEVER.isdisjoint(name.split("/")) and not file.is_symlink() and file.is_file():
            yield name


def _walked(folder: Path) -> Iterator[str]:
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in NEVER]
        for name in files:
            yield Path(at, name).relative_to(folder).as_posix()


def _by_git(folder: Path) -> list[str] | None:
    """What git tracks or would track, in a repository or not; None without git."""
    git = shutil.which("git")
    if git is None:
        return None
    inside = subprocess.run([git, "rev-parse", "--is-inside-work-tree"], cwd=folder, capture_output=True, check=False)
    if inside.returncode == 0:
        return _listed([git, *LISTING, "--cached"], folder)
    with tempfile.TemporaryDirectory() as empty:
        subprocess.run([git, "init", "-q", "--bare", empty], capture_output=True, check=True)
        return _listed([git, f"--git-dir={empty}", f"--work-tree={folder.resolve()}", *LISTING], folder)


def _listed(argv: list[str], folder: Path) -> list[str] | None:
    process = subprocess.run(argv, cwd=folder, capture_output=True, check=False)
    if process.returncode:
        return None
    return [os.fsdecode(name) for name in process.stdout.split(b"\0") if name]
