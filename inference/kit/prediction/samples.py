"""Which pictures are answered, in an order that never changes, and their bytes."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path, PurePosixPath
from typing import Any

from inference.kit.samples import learned
from inference.kit.samples.ground_truth import UNSEEN
from inference.kit.samples.run import Run

MISSING, NOT_A_FILE, UNREADABLE = "missing", "not_a_file", "unreadable"  # why a picture has no answer


class NoPictures(Exception):
    """There is nothing to answer; the message says why."""


class Unopened(Exception):
    """A picture that cannot be opened; `code` says why."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def list_paths(run: Run, listed: str) -> list[str]:
    """Paths below the folder of pictures.

    Args:
        listed: a file with one path, as JSON, on each line; "" takes those of the dataset version, its split alone.

    Raises:
        NoPictures: there is none.
    """
    if listed:
        with Path(listed).open(encoding="utf-8") as file:
            paths = [str(json.loads(line)) for line in file if line.strip()]
    else:
        paths = _of_version(run.dataset, str(run.params.get("split") or ""), run.params.get("learned"))
    if not paths:
        raise NoPictures("There are no pictures to answer.")
    return paths


def _of_version(root: Path, split: str, training: dict[str, Any] | None) -> list[str]:
    with (root / "manifest.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    if split == UNSEEN:
        options = {name: value for name, value in (training or {}).items() if name != "dir"}
        trained = learned.keys(Path(training["dir"]), **options) if training else set()
        return [row["path"] for row in rows if learned.key(row) not in trained]
    return [row["path"] for row in rows if not split or row.get("split") == split]


class Pictures:
    """The folder of all paths; links in it are never followed."""

    def __init__(self, root: Path) -> None:
        self._root = os.open(root, os.O_RDONLY | os.O_DIRECTORY)

    def read(self, path: str) -> bytes:
        """The bytes of a picture.

        Raises:
            Unopened: it does not exist, is not a regular file, or its name leads outside.
        """
        parts = PurePosixPath(path).parts
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            raise Unopened(NOT_A_FILE)
        folder = os.dup(self._root)
        try:
            for part in parts[:-1]:
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = below
            return _read(folder, parts[-1])
        except OSError as exc:
            odd = exc.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
            there = isinstance(exc, FileNotFoundError)
            raise Unopened(NOT_A_FILE if odd else MISSING if there else UNREADABLE) from None
        finally:
            os.close(folder)


def _read(folder: int, name: str) -> bytes:
    # a pipe is not waited for
    opened = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Unopened(NOT_A_FILE)
        return file.read()
