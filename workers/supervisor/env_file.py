"""Environment of a job as a file that any shell reads: `. /pod.env`. Standard library only.

Programs that begin without the job's environment (a login shell, sudo, cron) get it back by it. From tier 2 on it lies
in the sandbox alone, where nobody else lives; below, in the job's own TMPDIR, readable by its user alone.
"""

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PATH = "/pod.env"
LATER = "/pod.later.env"  # in the sandbox alone: what is set after all rights are given up
NAME = "pod.env"  # in TMPDIR, where a job has no root of its own


def content(env: "Mapping[str, str]") -> bytes:
    """One line for each variable; values quoted so that a shell takes them as they are."""
    lines = [f"export {name}={_quoted(env[name])}\n" for name in sorted(env) if _is_name(name)]
    return "".join(lines).encode(errors="surrogateescape")


def wrapper(path: str) -> list[str]:
    """Return the prefix of a command that reads its variables from such a file: command lines are public."""
    return ["/bin/sh", "-c", '. "$0" && exec "$@"', path]


def write(folder: str, env: "Mapping[str, str]", uid: int) -> None:
    """Write it into a folder of the job's own, for its user alone. One that cannot be written is done without."""
    path = os.path.join(folder, NAME)
    with contextlib.suppress(OSError):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o400)
        with open(opened, "wb") as file:
            if uid:
                os.fchown(opened, uid, uid)
            file.write(content(env))


def _is_name(name: str) -> bool:
    return name.isidentifier() and name.isascii()


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "'\\''") + "'"
