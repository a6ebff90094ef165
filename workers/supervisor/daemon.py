"""Detaching, and the rule that a run directory is kept by exactly one supervisor, once.

Who starts a supervisor is told how that went, but may be gone by then: what counts stands in the run directory.
"""

import os
import signal
import sys

from workers.supervisor import claims, records, sandbox
from workers.supervisor.process_supervisor import ProcessSupervisor
from workers.supervisor.ticket import Ticket

STARTED, FAILED, ALREADY, BAD_USE = 0, 1, 3, 64  # exit codes
_CODES = {"started": STARTED, "already": ALREADY, "no room": claims.DISK_FULL_EXIT_CODE}
_MAX_BYTES = 2000  # bytes of an answer: below what a pipe takes at once


def main(argv: list[str]) -> int:
    """Start the supervisor of the run directory `argv[1]` in the background.

    Returns when the command runs (or could not be started, see exit.json): STARTED, or ALREADY when another one owns or
    owned it. FAILED is said with a line on stderr, and so is claims.NO_ROOM, of a full disk: nothing began then, ask
    again later. A command is started at most once per run directory, whoever asks and however often: the claim is the
    creation of supervisor.json.
    """
    if len(argv) != 2:
        print("usage: python -I -S …/workers/supervisor/__main__.py RUN_DIR", file=sys.stderr)
        return BAD_USE
    reader, writer = os.pipe()
    if os.fork():
        os.close(writer)
        word, _colon, why = os.read(reader, _MAX_BYTES).decode(errors="replace").partition(": ")
        if word not in _CODES or word == "no room":
            print(why or "The supervisor ended before it could say why.", file=sys.stderr)
        return _CODES.get(word, FAILED)
    os.close(reader)
    run(argv[1], writer)
    os._exit(0)


def run(home: str, tell: int) -> None:
    """Be the supervisor of a run directory, from here to the end of its command; the caller ends after that.

    Args:
        tell: takes "started", "already", "no room: why" or "failed: why", and is closed then; nobody has to listen.
    """
    asker = _Asker(tell)
    try:
        _supervise(home, asker)
    except Exception as exc:
        asker.answer(f"failed: {type(exc).__name__}: {exc}")
        raise


class _Asker:
    """The starter at the other end of a pipe or socket. It gets one answer, and may have ended by then."""

    def __init__(self, tell: int) -> None:
        self._tell = tell

    def answer(self, text: str) -> None:
        tell, self._tell = self._tell, -1
        if tell < 0:
            return
        try:
            os.write(tell, text.encode()[:_MAX_BYTES])
        except OSError:
            pass
        finally:
            os.close(tell)


def _supervise(home: str, asker: _Asker) -> None:
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    written = records.read(os.path.join(home, records.LAUNCH))
    if written is None:
        raise ValueError(f"no {records.LAUNCH} in {home}")
    ticket = Ticket.from_json(written)
    os.umask(sandbox.umask(ticket))
    try:
        claim = claims.claim(home)
    except OSError as exc:
        if not records.is_refused(exc):
            raise
        asker.answer(f"no room: {exc}")
        return
    if claim is None:
        asker.answer("already")
        return
    _detach(home)
    _supervisor_class(ticket)(home, ticket, claim).supervise(lambda: asker.answer("started"))


def _supervisor_class(ticket: Ticket) -> type[ProcessSupervisor]:
    if ticket.tier < sandbox.CONTAINER:
        return ProcessSupervisor
    from workers.supervisor.container_supervisor import ContainerSupervisor  # noqa: PLC0415 - most jobs need none, and every start counts

    return ContainerSupervisor


def _detach(home: str) -> None:
    """Keep no file of the Celery worker open; the supervisor's own output goes to a file next to the log."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        own = os.open(os.path.join(home, "supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    except OSError:  # what cannot be told must not keep the job from running
        own = os.dup(null)
    os.dup2(null, 0)
    os.dup2(own, 1)
    os.dup2(own, 2)
    os.close(null)
    os.close(own)
