"""Start of the exec server: `python -I -S …/inside/exec_server.py LISTEN_FD NETWORK COMMAND [ARG…]`.

NETWORK is "shared", or "own:" and the socket of the way out, if there is one.

It stands before the command of a job, in its sandbox: it leaves the server behind, a process of its own, and becomes
the command, which therefore keeps its parent, its signals and its exit code. Nothing but this file is read before the
command begins.
"""

import _signal  # `signal` builds its names anew at each start: half of all the time this takes
import os
import sys

NAME = "aip-exec"  # what the server and its acts are called in /proc
_PR_SET_NAME = 15


def main() -> None:
    """Leave the server behind and become the command."""
    listen_fd, network, *argv = sys.argv[1:]
    command, parent = os.getpid(), os.getppid()
    os.set_inheritable(int(listen_fd), False)
    _call_me(NAME)  # the supervisor shall know the server from what the job leaves; exec names the command anew
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            _serve(int(listen_fd), network, command, parent)
        os._exit(0)
    os.waitpid(middle, 0)  # the command shall have no child that it does not know
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and exec would hand that on
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvpe(argv[0], argv, _as_given())
    except OSError as exc:
        os.write(2, f"[could not start {argv[0]!r}: {exc.strerror}]\n".encode())
    os._exit(127)


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
            given = {line.partition(b"=")[0] for line in file.read().split(b"\0")}
    except OSError:
        return dict(os.environ)
    return {name: value for name, value in os.environ.items() if os.fsencode(name) in given}


def _find_ourselves(folder: str) -> None:
    """Make the modules beside this file importable by their names: what lies above may not be looked at in here."""
    for name, places in (("workers", []), ("workers.supervisor", []), ("workers.supervisor.inside", [folder])):
        package = type(sys)(name)
        package.__path__ = places
        sys.modules[name] = package


def _serve(listen_fd: int, network: str, command: int, parent: int) -> None:
    """Be the server, in a session of its own: the log belongs to the command."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        _find_ourselves(os.path.dirname(os.path.realpath(__file__)))
        from workers.supervisor.inside import acts  # noqa: PLC0415 - the command does not wait for it

        own, _colon, egress = network.partition(":")
        acts.serve(listen_fd, command, acts.Job(0 if own == "own" else parent, _as_given()), egress)
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
