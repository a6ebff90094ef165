"""The exec server of a sandbox starts at the first connection, and the command beside it notices nothing."""

from __future__ import annotations

import os
import signal

import pytest

from tests.running import wait_for as until
from tests.workers.exec_client import WAITS, Asked, served, server_of
from tests.workers.supervised import BEST, PYTHON
from workers.supervisor import exec_wakeup, sandbox
from workers.supervisor.ticket import Ticket

__all__ = ["served"]  # a fixture
pytestmark = [
    pytest.mark.sockets("exec servers of jobs"),
    pytest.mark.skipif(BEST < sandbox.BUBBLEWRAP, reason="this machine offers no bubblewrap"),
]
SANDBOXED = pytest.mark.parametrize("tier", range(sandbox.BUBBLEWRAP, BEST + 1))


def program_of(pid):
    return os.path.basename(os.readlink(f"/proc/{pid}/exe"))


@SANDBOXED
def test_interpreter_of_the_exec_server_starts_at_the_first_connection(served, tier):
    job = served(WAITS, tier)
    waiting = until(lambda: server_of(job))
    assert not program_of(waiting).startswith("python")

    with Asked(job.socket, act="session", command="exit 7") as one:
        assert one.finish() == {"code": 7}

    assert server_of(job) == waiting  # the same process, so the same namespaces, user, filter and limits
    assert program_of(waiting).startswith("python")


@SANDBOXED
def test_exec_server_has_the_confinement_of_the_command(served, tier):
    job = served(WAITS, tier)
    with Asked(job.socket, act="session", command="true") as one:
        one.finish()
    server = server_of(job)
    command = next(pid for pid in job.programs() if pid != server and program_of(pid).startswith("python"))

    def confinement(pid):
        with open(f"/proc/{pid}/status") as status:
            lines = [line for line in status if line.startswith(("Uid", "Gid", "Groups", "Cap", "NoNew", "Seccomp"))]
        spaces = {name: os.readlink(f"/proc/{pid}/ns/{name}") for name in os.listdir(f"/proc/{pid}/ns")}
        with open(f"/proc/{pid}/limits") as limits, open(f"/proc/{pid}/cgroup") as groups:
            return lines, spaces, limits.read(), groups.read(), os.readlink(f"/proc/{pid}/root")

    assert confinement(server) == confinement(command)


@SANDBOXED
def test_command_has_the_variables_it_was_given_whether_a_shell_stands_before_it_or_not(served, run, tier):
    def variables(job):
        job.exit()
        return {line for line in job.log().splitlines() if "=" in line and not line.startswith("[")}

    for more in ({"OWN": "a 'b'\t$HOME"}, {"with.dot": "1", "PPID": "7"}):
        beside = variables(served(["/usr/bin/env"], tier, started=False, env=more))
        alone = variables(run(["/usr/bin/env"], tier, env=more))

        different = {line for line in beside ^ alone if not line.startswith(("RUN=", "PWD=", "SHLVL="))}
        assert not different
        assert {f"{name}={value}" for name, value in more.items()} <= beside


@SANDBOXED
def test_server_that_waits_survives_signals_that_are_meant_for_the_command(served, tier):
    job = served(WAITS, tier)
    waiting = until(lambda: server_of(job))
    for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "ALRM"):
        os.kill(waiting, getattr(signal, f"SIG{name}"))

    with Asked(job.socket, act="session", command="exit 5") as one:
        assert one.finish() == {"code": 5}


@SANDBOXED
def test_end_of_a_command_that_nobody_connected_to_leaves_nothing(served, tier):
    ends = [served([PYTHON, "-I", "-S", "-c", ""], tier, started=False).exit() for _ in range(3)]

    assert [(end["code"], end["leftovers"], end["unkillable"]) for end in ends] == [(0, 0, [])] * 3


@pytest.mark.parametrize(
    ("tier", "env", "possible"),
    [
        (sandbox.OWN_UID, {"PATH": "/bin", "A_1": "x"}, True),
        (sandbox.LANDLOCK, {}, False),
        (sandbox.CONTAINER, {}, False),
        *((sandbox.BUBBLEWRAP, {name: "x"}, False) for name in ("a.b", "BASH_FUNC_f%%", "PPID", "é", "1A", "A\n", "_")),
    ],
)
def test_server_starts_late_where_a_shell_changes_no_variable(tier, env, possible):
    ticket = Ticket(job=1, attempt=1, argv=["true"], env=env, cwd="/", tier=tier)

    assert exec_wakeup.is_possible(ticket) is possible


def test_descriptor_with_the_number_of_the_servers_input_is_moved():
    pid = os.fork()
    if pid == 0:
        source = sandbox.past_exec_input(os.open(os.devnull, os.O_RDONLY))
        for inheritable in (True, False):
            os.dup2(source, sandbox.EXEC_INPUT, inheritable=inheritable)
            moved = sandbox.past_exec_input(sandbox.EXEC_INPUT)
            good = moved != sandbox.EXEC_INPUT and os.get_inheritable(moved) is inheritable
            if not good or sandbox.past_exec_input(moved) != moved:
                os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
