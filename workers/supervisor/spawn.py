"""Starting the user's command: own session, own limits, scrubbed environment, then the sandbox."""

import ctypes
import os
import resource
import signal

from workers.supervisor import env_file, exec_socket, exec_wakeup, idmapped, processes, root_inside, sandbox
from workers.supervisor.exec_wakeup import ExecWakeup
from workers.supervisor.ticket import Ticket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from workers.supervisor.cgroups import Group

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Make the calling process the parent of every orphan below it."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(ticket: Ticket, log: str, group: "Group | None" = None) -> "tuple[int, ExecWakeup | None]":
    """Start the command of `ticket` with both outputs into the file `log`.

    Returns:
        Its pid, and what wakes its exec server where that starts at the first connection.

    Args:
        group: the limits it lives under, in tier 3.

    Raises:
        OSError: no such program or folder, or the sandbox could not be entered.
    """
    supervisor_pid = os.getpid()
    files = sandbox.handed(ticket)
    if ticket.tier < sandbox.BUBBLEWRAP and ticket.tmp:
        env_file.write(ticket.tmp, ticket.env, ticket.uid)
    listener = exec_socket.listen(ticket.exec_socket, log)
    wakeup = ExecWakeup(ticket, listener) if listener and exec_wakeup.is_possible(ticket) else None
    before = wakeup.prefix() if wakeup else exec_socket.server(ticket, listener) if listener else []
    argv = sandbox.wrapped(ticket, files, before)
    reader, writer = map(sandbox.past_exec_input, os.pipe())  # closed by exec: silence means that the command runs
    pid = os.fork()
    if pid == 0:
        try:
            _become(ticket, supervisor_pid, log, group)
            if wakeup:
                wakeup.hand_on()
            elif listener:
                listener.set_inheritable(True)
            os.execvpe(argv[0], argv, sandbox.environment(ticket))
        except OSError as exc:
            os.write(writer, f"{exc.errno or 0} {exc.filename or argv[0]}".encode(errors="replace"))
        finally:
            os._exit(127)
    os.close(writer)
    if wakeup:
        wakeup.begun()
    elif listener:
        listener.close()  # whoever asks a server that is gone shall hear that at once
    for opened in files.values():
        os.close(opened)
    try:
        number, _space, name = os.read(reader, 4096).decode(errors="replace").partition(" ")
    finally:
        os.close(reader)
    if number:
        os.waitpid(pid, 0)
        if wakeup:
            wakeup.close()
        raise OSError(int(number), os.strerror(int(number)), name)
    return pid, wakeup


def _become(ticket: Ticket, supervisor_pid: int, log: str, group: "Group | None") -> None:
    """What the child does between fork and exec."""
    os.setsid()
    _die_with(supervisor_pid)
    null = os.open(os.devnull, os.O_RDONLY)
    # opened for the command alone: flags that a program sets of its output must not become the supervisor's
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    for source, target in ((null, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.umask(sandbox.umask(ticket))
    _hear_every_signal()
    _limit(ticket.rlimits)
    _sacrifice_first()
    if group:
        group.enter()
    if not ticket.root:
        idmapped.mount(ticket)
    os.chdir(ticket.cwd if ticket.tier < sandbox.BUBBLEWRAP else "/")
    sandbox.enter(ticket)
    root_inside.enter(ticket)
    if ticket.uid or ticket.root:
        _die_with(supervisor_pid)  # the kernel forgets it with a change of user


def _die_with(supervisor_pid: int) -> None:
    """Die when the supervisor dies, or now, if it died before this call."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor_pid:
        os._exit(1)


def _hear_every_signal() -> None:
    """Undo what the supervisor ignores: a program would ignore it as well, and shells know no Ctrl-C then."""
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _limit(rlimits: "dict[str, int]") -> None:
    """Set limits that no program can raise again; no core is written, and as much memory locked as may be."""
    for name, number in ({"CORE": 0} | rlimits).items():
        which = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(which)[1]
        soft = number if hard < 0 else min(number, hard)
        resource.setrlimit(which, (soft, soft if name == "CORE" else hard))
    try:  # network cards of gangs read memory that is locked; how much a job holds is counted anyway
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (ValueError, OSError):  # not root's to raise
        hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (hard, hard))


def _sacrifice_first() -> None:
    """When memory runs out the kernel shall take a job, not the platform."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        return


def jobs_own(ticket: Ticket, outer: int) -> list[int]:
    """Return the job's processes, parents first, without the two bubblewrap leaves around them.

    Those hold no user code, and a TERM or STOP for them would end or blind the whole job.
    """
    below = processes.descendants(os.getpid())
    if ticket.tier < sandbox.BUBBLEWRAP:
        return below
    wrappers = {outer, *processes.children(outer)}
    return [pid for pid in below if pid not in wrappers]
