"""The files of a run directory, and who a process is.

| file | writer | content |
|---|---|---|
| launch.json | launching | the ticket, see `ticket` |
| requested | agent, launching | one word: run, pause, evict, stop, finish, finish quick, suspend, kill |
| limit | agent | the maximum run time in seconds, where it is not the ticket's any more; empty: none |
| control | supervisor | one word for the script: empty, pause, suspend, finish; "finish quick": nobody needs a result |
| paused | supervisor | seconds for which pauses and evictions stopped the processes, those that ended |
| supervisor.json | supervisor | pid, start ticks, boot id, the command's pid; made once, with O_EXCL |
| status.json | supervisor | what the processes do now |
| disk.json | supervisor | what the job takes of its disk limit, where it has one |
| exit.json | supervisor | how it ended; fsynced, then renamed: either whole or absent |
"""

import errno
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Name = str | os.PathLike[str]

LAUNCH = "launch.json"
REQUESTED = "requested"
LIMIT = "limit"
CONTROL = "control"
PAUSED = "paused"
SUPERVISOR = "supervisor.json"
STATUS = "status.json"
DISK = "disk.json"
EXIT = "exit.json"
LOG = "log.txt"

FINISH_QUICK = "finish quick"
STRENGTH = {"run": 0, "pause": 0, "evict": 0, "suspend": 1, "finish": 2, FINISH_QUICK: 2, "stop": 3, "kill": 4}
"""What may be requested; a later request never softens an earlier one."""
REQUESTS = tuple(STRENGTH)
_MAX_LENGTH = max(map(len, REQUESTS))
PROTOCOL = 4
"""Stands in supervisor.json. Supervisors of protocol 1, which began before an upgrade, wrote no number; they read the
file `wish` and say `freeze` and `frozen` for a pause. Those before protocol 3 do not know `kill`, those before 4
not `finish quick`."""
_SINCE = {"kill": (3, "stop"), FINISH_QUICK: (4, "finish")}
NO_ROOM_BYTES = 64 << 10
"""With less than this free a disk counts as full."""
_REFUSED = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO}
_PIECE = 64 << 10
_WISH = "wish"
_TO_FIRST = {"pause": "freeze"}
_FROM_FIRST = {"freeze": "pause", "freezing": "pausing", "frozen": "paused"}


def write(path: "Name", value: object, *, durable: bool = False) -> None:
    """Replace `path` by rename, so that a reader sees the old or the new text and never half of one.

    Args:
        value: text is written as it is, everything else as JSON.
        durable: also survive a power cut (fsync of file and directory).
    """
    folder, name = os.path.split(os.fspath(path))
    part = os.path.join(folder, f".{name}.{os.getpid()}")
    try:
        opened = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            content = as_text(value).encode()
            while content:
                content = content[os.write(opened, content) :]
            if durable:
                os.fsync(opened)
        finally:
            os.close(opened)
        os.replace(part, path)
    except OSError:
        remove(part)  # on a full disk each try would leave one behind
        raise
    if durable:
        sync_folder(folder or ".")


def as_text(value: object) -> str:
    """Return what `write` puts into a file."""
    return value if isinstance(value, str) else json.dumps(value)


def sync_folder(folder: "Name") -> None:
    """Make the names in a folder survive a power cut."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def remove(path: "Name") -> None:
    """Delete a file, if it is there and can be."""
    try:
        os.unlink(path)
    except OSError:
        return


def is_refused(exc: OSError) -> bool:
    """Whether the disk takes nothing now and may later: full, over a quota, read-only for a while, or failing."""
    return exc.errno in _REFUSED


def has_no_room(path: "Name") -> bool:
    """Whether so little of the disk is free that programs fail to write."""
    try:
        disk = os.statvfs(path)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < NO_ROOM_BYTES or (disk.f_files > 0 and disk.f_favail == 0)


def text(path: "Name") -> str:
    """Return the whole of a small file.

    Raises:
        OSError: there is none, or it may not be read.
    """
    return content(path).decode()


def content(path: "Name") -> bytes:
    """Return the bytes of a small file, or one of /proc: Python's own files cost several times as many system calls."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(descriptor, _PIECE)
        while data and (more := os.read(descriptor, _PIECE)):
            data += more
        return data
    finally:
        os.close(descriptor)


def read(path: "Name") -> "dict[str, Any] | None":
    """Return the JSON object in `path`, or None where there is none (absent, torn, not an object)."""
    try:
        value = json.loads(text(path))
    except (OSError, ValueError):
        return None
    return _translated(value) if isinstance(value, dict) else None


def _translated(value: "dict[str, Any]") -> "dict[str, Any]":
    """The words of protocol 1 in status.json and exit.json as the words of today."""
    if _WISH in value:
        value.setdefault("requested", _FROM_FIRST.get(value[_WISH], value[_WISH]))
    if value.get("state") in _FROM_FIRST:
        value["state"] = _FROM_FIRST[value["state"]]
    return value


def write_request(run: "Name", word: str) -> None:
    """Write a request for the supervisor of this run, in its protocol. Works on a full disk, too."""
    word = compatible_request(run, word)
    path = os.path.join(run, REQUESTED)
    try:
        write(path, word)
    except OSError as exc:
        if not is_refused(exc):
            raise
        _overwrite(path, word)
    supervisor = read(os.path.join(run, SUPERVISOR))
    if supervisor is not None and "protocol" not in supervisor:
        write(os.path.join(run, _WISH), _TO_FIRST.get(word, word))


def compatible_request(run: "Name", word: str) -> str:
    """Return the word of a request in the protocol of this run's supervisor."""
    first, otherwise = _SINCE.get(word, (0, word))
    supervisor = read(os.path.join(run, SUPERVISOR)) if first else None
    return otherwise if supervisor is not None and supervisor.get("protocol", 1) < first else word


def verb(word: str) -> str:
    """Return what is requested without how: of "finish quick", finish."""
    return word.partition(" ")[0]


def _overwrite(path: "Name", word: str) -> None:
    """Overwrite a word in place, which takes no room: a job that fills the disk must still receive requests."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(descriptor, word.ljust(_MAX_LENGTH).encode(), 0)
    finally:
        os.close(descriptor)


def read_request(run: "Name") -> str:
    """Return the wanted word; anything absent or unknown means `run`."""
    for name in (REQUESTED, _WISH):  # a run of before an upgrade has only the second
        try:
            word = text(os.path.join(run, name)).strip()
        except (OSError, ValueError):
            continue
        word = _FROM_FIRST.get(word, word)
        return word if word in REQUESTS else "run"
    return "run"


def read_limit(run: "Name", default: float | None) -> float | None:
    """Return the present maximum run time in seconds, `default` where it was not changed; None is no limit."""
    try:
        word = text(os.path.join(run, LIMIT)).strip()
        return float(word) if word else None
    except (OSError, ValueError):
        return default


def boot_id() -> str:
    """Return this boot's id: a pid of another boot means nothing."""
    return text("/proc/sys/kernel/random/boot_id").strip()


def start_ticks(pid: int) -> int | None:
    """Return when `pid` started, in clock ticks since boot; None for a dead process or a zombie.

    Together with the boot id this tells a process from a later one with the same number.
    """
    try:
        fields = text(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_alive(record: "dict[str, Any] | None") -> bool:
    """Tell whether the process named by {pid, start_ticks, boot_id} still runs on this machine."""
    if not record or record.get("boot_id") != boot_id():
        return False
    return start_ticks(int(record["pid"])) == record.get("start_ticks")
