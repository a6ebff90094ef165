"""Disk usage of a job: what its folders take, counted in pieces so that neither a core nor the supervisor is held.

Counted are allocated blocks, as `du` does: a sparse file counts what it takes and not its length, a file with several
names once. Symbolic links are not followed, other file systems mounted below a folder are left out. Files that were
deleted and are still open in a process of the job count as well, where /proc shows them.
"""

import os
import stat
import time

from workers.supervisor import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

BLOCK_BYTES = 512  # unit of st_blocks
MAX_LINKED_FILES = 100_000  # remembered files with several names; of further ones each name counts its share
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 128  # entries between two looks at the clock


class Walk:
    """One count of some folders, advanced piece by piece. It holds one open folder, however deep the tree is.

    Attributes:
        bytes: counted so far, of everything once `done`.
        entries: files and folders counted so far.
        done: whether the count is over; `whole` is false where a folder was moved elsewhere meanwhile.
    """

    def __init__(self, folders: "Iterable[str]", pids: "Callable[[], list[int]]") -> None:
        self.bytes = self.entries = 0
        self.done, self.whole = False, True
        self._pids = pids
        self._linked: set[int] = set()
        self._devices: set[int] = set()
        self._pieces = self._count(_without_nested(folders))

    def advance(self, seconds: float) -> float:
        """Count for so long, one piece at least, or to the end; return the CPU seconds that it took."""
        began, until = time.thread_time(), time.monotonic() + seconds
        while not self.done:
            self.done = next(self._pieces, True)
            if time.monotonic() >= until:
                break
        return time.thread_time() - began

    def close(self) -> None:
        """Give up the count."""
        self._pieces.close()

    def _count(self, folders: "list[str]") -> "Generator[bool, None, None]":
        for folder in folders:
            yield from self._tree(folder)
        yield from self._deleted()

    def _tree(self, top: str) -> "Iterator[bool]":
        try:
            here = os.open(top, _FLAGS)
        except OSError:
            return
        above: list[tuple[tuple[int, int], list[str]]] = []  # identity and remaining folders of each parent
        try:
            device = os.fstat(here).st_dev
            self._devices.add(device)
            self.bytes += os.fstat(here).st_blocks * BLOCK_BYTES
            names = yield from self._entries(here, device)
            while names or above:
                if names:
                    child = _opened(names.pop(), here)
                    if child is None:
                        continue
                    above.append((_identity(here), names))
                    os.close(here)
                    here = child
                    names = yield from self._entries(here, device)
                    continue
                parent, names = above.pop()
                below, here = here, os.open("..", _FLAGS, dir_fd=here)
                os.close(below)
                if _identity(here) != parent:  # moved meanwhile: what is left of this tree cannot be found from here
                    self.whole = False
                    return
        except OSError:
            self.whole = False
        finally:
            os.close(here)

    def _entries(self, folder: int, device: int) -> "Generator[bool, None, list[str]]":
        """Count the entries of an open folder; returns the names of the folders in it."""
        names: list[str] = []
        try:
            entries = os.scandir(folder)
        except OSError:
            return names
        with entries:
            for entry in entries:
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:  # deleted meanwhile
                    continue
                if status.st_dev != device:
                    continue
                if stat.S_ISDIR(status.st_mode):
                    names.append(entry.name)
                self._add(status)
                if self.entries % _PIECE == 0:
                    yield False
        return names

    def _add(self, status: os.stat_result) -> None:
        self.entries += 1
        size = status.st_blocks * BLOCK_BYTES
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            key = status.st_dev << 64 | status.st_ino
            if key in self._linked:
                return
            if len(self._linked) < MAX_LINKED_FILES:
                self._linked.add(key)
            else:
                size //= status.st_nlink
        self.bytes += size

    def _deleted(self) -> "Iterator[bool]":
        """Count files without a name that processes of the job hold open."""
        counted: set[tuple[int, int]] = set()
        for pid in self._pids():
            for status in _open_deleted(pid):
                if status.st_dev in self._devices and _key(status) not in counted:
                    counted.add(_key(status))
                    self.bytes += status.st_blocks * BLOCK_BYTES
            yield False


def written_bytes(pids: "Iterable[int]") -> "int | None":
    """Return what these processes, and all that the calling one has collected, sent to disks; None: not readable."""
    total = 0
    for pid in ("self", *pids):
        try:
            lines = records.text(f"/proc/{pid}/io").splitlines()
        except (FileNotFoundError, ProcessLookupError):  # it ended just now
            continue
        except OSError:
            return None
        total += next((int(line.split()[1]) for line in lines if line.startswith("write_bytes:")), 0)
    return total


def free_bytes(folders: "Iterable[str]") -> int:
    """Return the free space of the file systems that these folders are on, each counted once."""
    free: dict[int, int] = {}
    for folder in folders:
        try:
            status, disk = os.stat(folder), os.statvfs(folder)
        except OSError:
            continue
        free[status.st_dev] = disk.f_bfree * disk.f_frsize
    return sum(free.values())


def _without_nested(folders: "Iterable[str]") -> list[str]:
    """The folders without those that are inside another one."""
    paths: list[str] = []
    for folder in sorted({os.path.realpath(folder) for folder in folders}):
        if not any(folder.startswith(outer + os.sep) for outer in paths):
            paths.append(folder)
    return paths


def _opened(name: str, folder: int) -> "int | None":
    try:
        return os.open(name, _FLAGS, dir_fd=folder)
    except OSError:  # deleted meanwhile, replaced by a link, or not readable
        return None


def _identity(folder: int) -> tuple[int, int]:
    return _key(os.fstat(folder))


def _key(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _open_deleted(pid: int) -> "Iterator[os.stat_result]":
    """Regular files that a process holds open and that have no name any more."""
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError:
        return
    for number in numbers:
        path = f"{folder}/{number}"
        try:
            if not os.readlink(path).endswith(" (deleted)"):
                continue
            status = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
            yield status
