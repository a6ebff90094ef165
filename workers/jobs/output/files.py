"""Output files: what the attempts of a job left under outputs/, listed, opened and packed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.utils.translation import gettext as _

from aiplatform.lib import files, ids, times
from aiplatform.lib.errors import Invalid, NotFound
from workers.core.models import Job
from workers.core.runs import RunDir

MAX_LISTED = 5_000  # files shown; the zip holds all of them
MAX_ZIPPED = 200_000
MAX_OPEN = 5  # files of a folder that are listed one by one


@dataclass(frozen=True)
class Output:
    """One file under outputs/; `path` is relative to it."""

    path: str
    size_bytes: int
    changed_at: datetime

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def depth(self) -> int:
        return self.path.count("/")


@dataclass(frozen=True)
class Folder:
    """A folder with many files, which lists show as one row that opens; "" holds the files that stand alone."""

    name: str
    files: list[Output]

    @property
    def size_bytes(self) -> int:
        return sum(output.size_bytes for output in self.files)

    @property
    def changed_at(self) -> datetime:
        return max(output.changed_at for output in self.files)


def by_folder(outputs: Iterable[Output]) -> list[Folder]:
    """Group outputs by the first folder of their path; a folder of few files stays open, its files stand alone."""
    groups: dict[str, list[Output]] = {}
    for output in outputs:
        groups.setdefault(output.path.partition("/")[0] if output.depth else "", []).append(output)
    folded = [Folder(name, rows) for name, rows in groups.items() if name and len(rows) > MAX_OPEN]
    names = {folder.name for folder in folded}
    alone = [output for name, rows in groups.items() if name not in names for output in rows]
    return [*([Folder("", alone)] if alone else []), *folded]


def attempts(job: Job) -> list[int]:
    """Numbers of the attempts that have outputs on disk, newest first."""
    root = RunDir.for_attempt(job.pk, 0).path.parent
    if not root.is_dir():
        return []
    numbers = [int(path.name) for path in root.iterdir() if path.name.isdigit()]
    return sorted((number for number in numbers if folder_of(job, number)), reverse=True)


def attempt_of(job: Job, requested: str = "", *, usual: int = 0) -> int:
    """The attempt to show: the requested one, else `usual` where it has outputs, else the newest that has.

    Raises:
        NotFound: no such attempt.
    """
    numbers = attempts(job)
    if requested:
        number = ids.number(requested)
        if number not in numbers:
            raise NotFound(_("Attempt not found."))
        return number
    if usual in numbers:
        return usual
    return numbers[0] if numbers else job.attempt_number


def listed(job: Job, attempt: int) -> tuple[list[Output], bool]:
    """Output files of one attempt, and whether there are more than are listed."""
    root = folder_of(job, attempt)
    if root is None:
        return [], False
    rows: list[Output] = []
    for path in files.walk_beneath(root, lenient=True):
        if len(rows) >= MAX_LISTED:
            return rows, True
        try:
            info = (root / path).lstat()
        except FileNotFoundError:  # the job is at work
            continue
        rows.append(Output(readable(path), info.st_size, times.moment(info.st_mtime)))
    return rows, False


def open_output(job: Job, attempt: int, path: str) -> int:
    """Descriptor of one output file.

    Raises:
        NotFound: nothing there, or a path, link or special file that leads elsewhere.
    """
    root = folder_of(job, attempt)
    if root is not None:
        try:
            return files.open_beneath(root, _on_disk(root, path))
        except (files.OutsideRoot, OSError, ValueError):
            pass
    raise NotFound(_("File not found."))


def for_zip(job: Job, attempt: int) -> list[tuple[str, Path, str]]:
    """All output files as (name in the zip, root, path below it).

    Raises:
        NotFound: no outputs.
        Invalid: too many for one zip.
    """
    root = folder_of(job, attempt)
    rows = [] if root is None else list(_some(root))
    if not rows:
        raise NotFound(_("No outputs yet."))
    return rows


def folder_of(job: Job, attempt: int) -> Path | None:
    """The outputs folder of an attempt, None while there is none."""
    root = RunDir.for_attempt(job.pk, attempt).outputs
    return root if root.is_dir() and not root.is_symlink() else None


def _some(root: Path) -> Iterator[tuple[str, Path, str]]:
    for count, path in enumerate(files.walk_beneath(root, lenient=True)):
        if count >= MAX_ZIPPED:
            raise Invalid(_("More than %(limit)s files: download them individually.") % {"limit": MAX_ZIPPED})
        yield readable(path), root, path


def readable(path: str) -> str:
    """A name as it can be shown and sent: bytes of a file name that are no text become "?"."""
    return path.encode("utf-8", "replace").decode()


def _on_disk(root: Path, path: str) -> str:
    """Turn a readable name back into the name on disk."""
    if "?" not in path or (root / path).exists():
        return path
    return next((name for name in files.walk_beneath(root, lenient=True) if readable(name) == path), path)
