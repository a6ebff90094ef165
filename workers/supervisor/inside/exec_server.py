"""Start of the exec server: `python -I -S …/inside/exec_server.py LISTENS NETWORK COMMAND [ARG…]`.

LISTENS is the number of the open socket that it is asked through, or, in a container, the path of another one where
that is handed over. NETWORK is "shared", or "own:" and the socket of the way out, if there is one.

It stands before the command of a job, in its sandbox: it leaves the server behind, a process of its own, and becomes
the command, which therefore keeps its parent, its signals and its exit code. Nothing but this file is read before the
command begins.

`exec_server.py --socket-on-stdin NETWORK COMMAND PARENT` is the server alone, started at the first connection
(`exec_wakeup`). The socket arrives through its standard input; COMMAND and PARENT are the pids of the command and of
its parent. Supervisors that began before an upgrade call the new file this way, too.
"""

import _signal  # `signal` builds its names anew at each start: half of all the time this takes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "aip-exec"  # process name of the server and its forks in /proc
COMMAND_SIGNALS = (_signal.SIGTERM, _signal.SIGINT, _signal.SIGHUP, _signal.SIGUSR1, _signal.SIGUSR2)
ON_STDIN = "--socket-on-stdin"
_PR_SET_NAME = 15


def main() -> None:
    """Leave the server behind and become the command, or be the server alone."""
    listens, network, *argv = sys.argv[1:]
    if listens == ON_STDIN:
        _call_me(NAME)
        _serve(lambda: _received(0), network, int(argv[0]), int(argv[1]))
    command, parent = os.getpid(), os.getppid()
    taken = _connected(listens)
    _call_me(NAME)  # the supervisor shall know the server from what the job leaves; exec names the command anew
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            _serve(taken, network, command, parent)
        os._exit(0)
    del taken  # where it was connected the command shall not find it open
    os.waitpid(middle, 0)  # the command shall have no child that it does not know
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and exec would hand that on
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvpe(argv[0], argv, _as_given())
    except OSError as exc:
        os.write(2, f"[could not start {argv[0]!r}: {exc.strerror}]\n".encode())
    os._exit(127)


def _connected(listens: str) -> "Callable[[], int]":
    """Return a function for the number of the listening socket; it is requested before the command starts."""
    if not listens.startswith("/"):
        os.set_inheritable(int(listens), False)
        return lambda: int(listens)
    import _socket  # noqa: PLC0415 - `socket` takes longer than all the rest; only containers need it

    door = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        door.connect(listens)
    except OSError:  # too late: the command runs all the same
        return lambda: -1

    return lambda: _received(door.fileno())


def _received(descriptor: int) -> int:
    """Return the number of the listening socket that arrives through another one, -1 where none does."""
    import _socket  # noqa: PLC0415 - not needed before the command begins

    door = _socket.socket(fileno=descriptor)
    handed = door.recvmsg(1, _socket.CMSG_SPACE(4))[1]
    door.detach()
    return int.from_bytes(handed[0][2][:4], sys.byteorder) if handed else -1


def _call_me(name: str) -> None:
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(name)
    except OSError:  # Landlock lets nothing in /proc be written
        import ctypes  # noqa: PLC0415 - it costs more than all the rest here

        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


def _as_given() -> "dict[str, str]":
    """The environment without what Python adds to it: in a C locale it sets one of UTF-8."""
    try:
        with open("/proc/self/environ", "rb") as file:
            names = {line.partition(b"=")[0] for line in file.read().split(b"\0")}
    except OSError:
        return dict(os.environ)
    return {name: value for name, value in os.environ.items() if os.fsencode(name) in names}


def _find_ourselves(folder: str) -> None:
    """Make the modules in this folder importable by their names: the folders above may not be readable here."""
    for name, places in (("workers", []), ("workers.supervisor", []), ("workers.supervisor.inside", [folder])):
        package = type(sys)(name)
        package.__path__ = places
        sys.modules[name] = package


def _serve(taken: "Callable[[], int]", network: str, command: int, parent: int) -> None:
    """Be the server, in a session of its own: the log belongs to the command."""
    try:
        os.setsid()
        listen_fd = taken()
        if listen_fd < 0:
            return
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        own, _colon, egress = network.partition(":")
        if not egress and not _is_called(listen_fd, command):
            return
        _find_ourselves(os.path.dirname(os.path.realpath(__file__)))
        from workers.supervisor.inside import dispatcher, requests  # noqa: PLC0415 - the command does not wait for it

        job = requests.Job(0 if own == "own" else parent, _as_given())
        dispatcher.serve(listen_fd, command, job, egress, COMMAND_SIGNALS)
    finally:
        os._exit(0)


def _is_called(listen_fd: int, command: int) -> bool:
    """Block until a client connects. Return False if the command ends first."""
    import select  # noqa: PLC0415 - the command does not wait for it

    for number in COMMAND_SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)
    try:
        over = os.pidfd_open(command)
    except ProcessLookupError:
        return False
    waiting = select.poll()
    waiting.register(over, select.POLLIN)
    waiting.register(listen_fd, select.POLLIN)
    ready = {descriptor for descriptor, _event in waiting.poll()}
    os.close(over)
    return over not in ready


if __name__ == "__main__":
    main()
