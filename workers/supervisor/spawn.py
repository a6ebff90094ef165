"""Starting the user's command: own session, own limits, scrubbed environment, then the sandbox."""

import ctypes
import os
import resource
import signal
import subprocess
from pathlib import Path

from workers.supervisor import processes, sandbox
from workers.supervisor.ticket import Ticket

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make the calling process the parent of every orphan below it."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(ticket: Ticket, log_fd: int) -> subprocess.Popen[bytes]:
    """Start the command of `ticket` with both outputs into `log_fd`.

    Raises:
        OSError: no such program or folder, or the sandbox could not be entered.
        subprocess.SubprocessError: a step between fork and exec failed.
    """
    keeper = os.getpid()

    def prepare() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != keeper:  # it died before we asked to die with it
            os._exit(1)
        for name, number in ticket.rlimits.items():
            which = getattr(resource, f"RLIMIT_{name}")
            hard = resource.getrlimit(which)[1]
            resource.setrlimit(which, (number if hard < 0 else min(number, hard), hard))
        _sacrifice_first()
        sandbox.enter(ticket)

    return subprocess.Popen(
        sandbox.wrapped(ticket),
        env=ticket.env,
        cwd=ticket.cwd if ticket.tier != sandbox.BUBBLEWRAP else "/",
        stdin=subprocess.DEVNULL,
        stdout=log_fd,
        stderr=log_fd,
        start_new_session=True,
        umask=0o027,
        preexec_fn=prepare,  # noqa: PLW1509 the supervisor has one thread
    )


def _sacrifice_first() -> None:
    """When memory runs out the kernel shall take a job, not the platform."""
    try:
        Path("/proc/self/oom_score_adj").write_text("500")
    except OSError:
        return


def jobs_own(ticket: Ticket, outer: int) -> list[int]:
    """Return the job's processes, parents first, without the two bubblewrap leaves around them.

    Those hold no user code, and a TERM or STOP for them would end or blind the whole job.
    """
    below = processes.descendants(os.getpid())
    if ticket.tier != sandbox.BUBBLEWRAP:
        return below
    wrappers = {outer, *processes.children(outer)}
    return [pid for pid in below if pid not in wrappers]
