"""Read the files of models in sandboxed processes: no network, no other files, bounded memory and time.

The tier of isolation is that of jobs on this host (`workers.supervisor.sandbox`), without containers. Callers wait;
files that take longer than they want to wait are read by a job, see `model_imports`.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar

from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _

from aiplatform.lib import archives, copies, wording
from aiplatform.lib.archive_refusals import ArchiveRefused
from aiplatform.lib.disk import DiskFull
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.files import remove_tree
from inference.registry.formats.declared import NOTHING, Declared, Files
from inference.registry.formats.folder import ModelContents
from inference.registry.inspector import inspection, limits, replies
from inference.registry.inspector.__main__ import OUT_OF_MEMORY
from inference.registry.inspector.trial_candidates import CannotTry
from workers.execution import tickets
from workers.supervisor import sandbox, tiers
from workers.supervisor.ticket import Ticket

log = logging.getLogger(__name__)
Value = TypeVar("Value")
MAX_BYTES = 20 << 30  # unpacked
MAX_FILES = 1000
ARCHIVES = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".zst", "")
FILES, PACKED = "in", "packed"  # in the folder of an import: the files of the model, and the archive that has them
SANDBOXED = "sandboxed"  # where the inspector reads and writes them
MAX_LOG_BYTES = 2000
SCRATCH_BYTES = 64 << 20  # of /tmp inside
_CODE = ("aiplatform", "inference", "training", "workers")  # packages that the program imports from
_PROCESSES = threading.BoundedSemaphore(2)  # at once in each process of the platform


@dataclass(frozen=True)
class Bounds:
    """What a caller of the program bears.

    Args:
        seconds: how long it waits.
        reply_bytes: length of the reply that it reads; a request reads little, so that parsing takes a few ms of its
            process. A longer one is read by a job.
    """

    seconds: float
    reply_bytes: int


REQUEST = Bounds(60, 256 << 10)
WORKER = Bounds(1800, 64 << 20)


class ModelRefused(DomainError, code="model_refused", status=400, field="file"):
    """The files are no model, or not a safe one."""


class TooSlow(ModelRefused):
    """Reading the files takes longer than the caller waits, or the reply is longer than it reads."""


_ERRORS: dict[str, type[DomainError]] = {
    each.code: each for each in (ModelRefused, Invalid, ArchiveRefused, CannotTry, DiskFull)
}


def unpack(archive: Path, filename: str, into: Path) -> None:
    """Hand over an archive for the folder `into`, or put one bare file there, as it was called when it came.

    The inspector unpacks the archive: this process looks at its first bytes alone.
    """
    suffix = Path(filename).suffix.lower()
    if archives.kind_of(archive) is None or suffix in (".onnx", ".safetensors"):
        into.mkdir()
        _copy(archive, into / f"model{suffix[:20]}")
        return
    # A .pt file is a zip too: refuse it by its name before looking inside.
    if suffix not in ARCHIVES:
        into.mkdir()
        (into / f"model{suffix[:20]}").touch()
        return
    _copy(archive, into.with_name(PACKED))


def _copy(path: Path, target: Path) -> None:
    with path.open("rb") as source:
        copies.copy(source, target)


def of_import(work: Path, declared: Declared, *, bounds: Bounds = REQUEST) -> ModelContents:
    """Contents of the files that were brought into the folder `work`, opened once by ONNX Runtime.

    A model.json made of what is declared is written where there is none.

    Raises:
        ModelRefused, Invalid, ArchiveRefused: everything that is wrong.
        TooSlow: it was not done within the bounds.
    """
    reply = _import(work, inspection.VERSION, declared, bounds)
    return decode_checked(lambda: replies.decode_found(reply, work / FILES))


def of_trial(work: Path, declared: Declared) -> tuple[list[Declared], Files]:
    """Ways to read the model that was brought into the folder `work`, and what its files say.

    Raises:
        ModelRefused, Invalid, ArchiveRefused, CannotTry: everything that is wrong.
    """
    reply = _import(work, inspection.TRIAL, declared, REQUEST)
    return decode_checked(lambda: replies.decode_trial(reply))


def of_detection(work: Path) -> tuple[ModelContents, Files | None]:
    """Contents of the files that were brought into the folder `work`; of an ONNX file without model.json, its facts.

    Raises:
        ModelRefused, Invalid, ArchiveRefused: everything that is wrong.
        TooSlow: it was not done within the bounds of a request.
    """
    reply = _import(work, inspection.DETECTION, NOTHING, REQUEST)
    content = decode_checked(lambda: replies.decode_found(reply, work / FILES))
    files = decode_checked(lambda: replies.decode_files(reply["files"])) if reply.get("files") else None
    return content, files


def of_outputs(folder: Path) -> ModelContents:
    """Contents of what a job of the platform left in a folder; no runtime opens it.

    Raises:
        ModelRefused: see `survey`.
    """
    request = {"act": inspection.SURVEY, "folder": str(folder), "archive": "", "declared": NOTHING, "opens": False}
    owner = folder.stat().st_uid
    reply = _reply(request, read=[folder], uid=owner if owner != os.geteuid() else 0, bounds=WORKER)
    return decode_checked(lambda: replies.decode_found(reply, folder))


def _import(work: Path, act: str, declared: Declared, bounds: Bounds) -> dict[str, Any]:
    """Let the inspector read and write in a folder of its own below `work`; what is there is moved in and out."""
    inner = work / SANDBOXED
    inner.mkdir()
    inside = [name for name in (FILES, PACKED) if (work / name).exists()]
    for name in inside:
        (work / name).rename(inner / name)
    archive = str(inner / PACKED) if PACKED in inside else ""
    request = {"act": act, "folder": str(inner / FILES), "archive": archive, "declared": declared, "opens": True}
    try:
        return _reply(request, write=[inner], uid=tiers.NOBODY, bounds=bounds)
    finally:
        if (inner / FILES).is_dir() and not (inner / FILES).is_symlink():
            (inner / FILES).rename(work / FILES)
        if archive and (inner / PACKED).is_file():
            (inner / PACKED).rename(work / PACKED)
        remove_tree(inner)


def decode_checked(decode: Callable[[], Value]) -> Value:
    """What `decode` makes of a reply.

    Raises:
        ModelRefused: it is none that the inspector writes.
    """
    try:
        return decode()
    except replies.BadReply as error:
        log.warning("inspector reply not usable: %s", error)
        raise crashed() from None


def crashed() -> ModelRefused:
    """The error where the program gave no usable reply."""
    return ModelRefused(_("The program that checks the files of models crashed on these. Export the model again."))


def _reply(
    request: dict[str, Any], *, read: Sequence[Path] = (), write: Sequence[Path] = (), uid: int, bounds: Bounds
) -> dict[str, Any]:
    """Return the reply of the inspector.

    Raises:
        DomainError: it refuses the files, crashed, or took too long or too much memory.
    """
    full_request = request | {
        "declared": replies.encode_declared(request["declared"]), "language": translation.get_language() or "en",
        "seconds": bounds.seconds,
    }  # fmt: skip
    if not _PROCESSES.acquire(timeout=bounds.seconds):
        raise _too_slow(bounds)
    try:
        reply = _run(complete_request(full_request), read, write, uid, bounds)
    finally:
        _PROCESSES.release()
    end_refused(reply)
    return reply


def complete_request(request: dict[str, Any]) -> dict[str, Any]:
    """Add the fields that are the same in all requests; for a program that is in a sandbox already."""
    locale = str(settings.LOCALE_PATHS[0])
    return request | {"max_bytes": MAX_BYTES, "max_files": MAX_FILES, "locale": locale, "ticket": None}


def end_refused(reply: dict[str, Any]) -> None:
    """Raise everything that is wrong with the files as a reply says it, if anything.

    Raises:
        DomainError: the first, with all others behind it.
    """
    try:
        refusals = replies.refusals_of(reply)
    except replies.BadReply:
        raise crashed() from None
    if refusals:
        first, *others = (_error(row) for row in refusals)
        first.others = tuple(others)
        raise first


def _error(row: dict[str, Any]) -> DomainError:
    kind = _ERRORS.get(row["code"], ModelRefused)
    message = wording.Message.from_json(row["worded"]) if row["worded"] else row["text"]
    refusal = kind(message or row["text"], field=row["field"])
    refusal.facts = row["facts"]
    return refusal


def _run(
    request: dict[str, Any], read: Sequence[Path], write: Sequence[Path], uid: int, bounds: Bounds
) -> dict[str, Any]:
    """Start the program, wait for it, and read its reply."""
    ticket = _ticket(read, write, uid)
    full_request = request | {"ticket": ticket.to_json() if ticket.tier < sandbox.BUBBLEWRAP else None}
    if ticket.uid:
        sandbox.chown_writable(ticket)
    files = sandbox.handed(ticket)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            done = subprocess.run(  # noqa: S603  our own program and paths of ours
                sandbox.wrapped(ticket, files), input=json.dumps(full_request).encode(), stdout=out, stderr=err,
                check=False, timeout=bounds.seconds, env=sandbox.environment(ticket), pass_fds=tuple(files.values()),
                cwd="/",
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise _too_slow(bounds) from None
        finally:
            for opened in files.values():
                os.close(opened)
        return _read(done.returncode, out, err, bounds)


def code_folders() -> list[Path]:
    """Packages of the platform that the program imports from."""
    return [Path(settings.BASE_DIR, name) for name in _CODE]


def _ticket(read: Sequence[Path], write: Sequence[Path], uid: int) -> Ticket:
    tier, bwrap = _tier()
    return Ticket(
        job=0, attempt=0, cwd="/", tier=tier, bwrap=bwrap, uid=uid if tier >= sandbox.OWN_UID else 0,
        argv=[sys.executable, "-P", "-m", "inference.registry.inspector"], own_network=True, memory_bytes=SCRATCH_BYTES,
        env={
            "PATH": "/usr/bin:/bin", "HOME": "/tmp",  # noqa: S108  its own, in memory
            "LANG": "C.UTF-8", "PYTHONPATH": str(settings.BASE_DIR),
            "PYTHONDONTWRITEBYTECODE": "1", **dict.fromkeys(tickets.THREADS, "1"),
        },
        read_only=list(map(str, [*tiers.python_folders(), *code_folders(), *read])), read_write=list(map(str, write)),
    )  # fmt: skip


@cache
def _tier() -> tuple[int, str]:
    """The isolation of jobs on this host; where those are containers, the strongest without."""
    tier, bwrap = tickets.tier()
    return (tier, bwrap) if tier <= sandbox.OWN_UID else tiers.best_tier()


def _read(code: int, out: IO[bytes], err: IO[bytes], bounds: Bounds) -> dict[str, Any]:
    size = out.seek(0, os.SEEK_END)
    if code == 0 and size > bounds.reply_bytes:
        message = _("The model files describe more than %(most)s kB, the limit of one request.")
        raise TooSlow(message % {"most": bounds.reply_bytes >> 10})
    if code == 0 and size:
        out.seek(0)
        try:
            reply = json.loads(out.read())
        except (ValueError, RecursionError):
            reply = None
        if isinstance(reply, dict):
            return reply
    err.seek(max(0, err.seek(0, os.SEEK_END) - MAX_LOG_BYTES))
    last = err.read(MAX_LOG_BYTES).decode(errors="replace")
    log.warning("inspector exit=%s reply=%s bytes: %s", code, size, last)
    if code in (-24, 128 + 24):  # SIGXCPU
        raise _too_slow(bounds)
    if code == OUT_OF_MEMORY:
        message = _("Checking the files of the model takes more than %(most)s GiB of memory.")
        raise ModelRefused(message % {"most": limits.MAX_BYTES >> 30})
    raise crashed()


def _too_slow(bounds: Bounds) -> TooSlow:
    return TooSlow(_("Reading the files of the model took longer than %(seconds)s s.") % {"seconds": bounds.seconds})
