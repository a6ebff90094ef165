"""Detaching, and the rule that a run directory is kept by exactly one supervisor, once."""

import fcntl
import os
import signal
import sys
import time

from workers.supervisor import records, sandbox
from workers.supervisor.process_supervisor import ProcessSupervisor
from workers.supervisor.ticket import Ticket

STARTED, ALREADY, BAD_USE = 0, 3, 64  # exit codes seen by launching


def main(argv: list[str]) -> int:
    """Start the supervisor of the run directory `argv[1]` in the background.

    Returns when the command runs (or could not be started, see exit.json): STARTED, or ALREADY when another one owns or
    owned it. A command is started at most once per run directory, whoever asks
    and however often: the claim is the creation of supervisor.json.
    """
    if len(argv) != 2:
        print("usage: python -I -S …/workers/supervisor/__main__.py RUN_DIR", file=sys.stderr)
        return BAD_USE
    run = argv[1]
    ticket = records.read(os.path.join(run, records.LAUNCH))
    if ticket is None:
        print(f"{run}: no launch.json", file=sys.stderr)
        return BAD_USE
    told, tell = os.pipe()
    if os.fork():
        os.close(tell)
        answer = os.read(told, 1)
        return STARTED if answer == b"s" else ALREADY
    os.close(told)
    _keep(run, Ticket.from_json(ticket), tell)
    os._exit(0)


def _keep(run: str, ticket: Ticket, tell: int) -> None:
    os.setsid()
    os.chdir("/")
    os.umask(0o027 if ticket.tier < sandbox.OWN_UID else 0o022)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    claim = _claim(run)
    if claim is None:
        os.write(tell, b"a")
        return
    _let_go_of_the_starter(run)

    def begun() -> None:
        os.write(tell, b"s")
        os.close(tell)

    _supervisor_class(ticket)(run, ticket, claim).keep(begun)


def _supervisor_class(ticket: Ticket) -> type[ProcessSupervisor]:
    if ticket.tier < sandbox.CONTAINER:
        return ProcessSupervisor
    from workers.supervisor.container_supervisor import ContainerSupervisor  # noqa: PLC0415 - most jobs need none, and every start counts

    return ContainerSupervisor


def _claim(run: str) -> dict[str, object] | None:
    """Create supervisor.json; None if somebody did before."""
    lock = os.open(os.path.join(run, ".claim"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        if os.path.exists(os.path.join(run, records.SUPERVISOR)):
            return None
        me: dict[str, object] = {
            "pid": os.getpid(),
            "start_ticks": records.start_ticks(os.getpid()),
            "boot_id": records.boot_id(),
            "started_at": time.time(),
            "protocol": records.PROTOCOL,
        }
        records.write(os.path.join(run, records.SUPERVISOR), me, durable=True)
        return me
    finally:
        os.close(lock)


def _let_go_of_the_starter(run: str) -> None:
    """Keep no file of the Celery worker open; what the supervisor itself has to say goes beside the log."""
    null = os.open(os.devnull, os.O_RDONLY)
    own = os.open(os.path.join(run, "supervisor.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640)
    os.dup2(null, 0)
    os.dup2(own, 1)
    os.dup2(own, 2)
    os.close(null)
    os.close(own)
