"""How a command is started on its machines: once on each, as several processes, or by torchrun."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.files import write_json
from training.programs import hostfile, launcher
from training.programs.launchers import Launcher
from training.programs.program import Program
from training.programs.start import CannotRun, meeting_place
from workers.core.models import Allocation, Attempt
from workers.core.runs import RunDir
from workers.execution import gang_environment, tickets
from workers.supervisor import records, sandbox

PROGRAM = "launch.py"
LAYOUT = "layout.json"
ALONE_PORT = 29500  # torchrun's own, where nobody else has to find it
MAX_PROCESSES = 128


def check(how: str, processes: int, worker: str, nodes: int) -> None:
    """Refuse an invalid launcher.

    Raises:
        Invalid: an unknown launcher, too many processes, a command for other machines where there are none.
    """
    refusals = Refusals()
    with refusals:
        if how not in Launcher.values:
            names = ", ".join(value for value in Launcher.values)
            raise Invalid(_("The launcher must be one of: %(names)s.") % {"names": names}, field="launcher")
    with refusals:
        if not 0 <= processes <= MAX_PROCESSES:
            raise Invalid(
                _("Request 0 to %(most)s processes per node; 0 means one per GPU.") % {"most": MAX_PROCESSES},
                field="processes",
            )
    with refusals:
        if processes > 1 and how == Launcher.ONCE:
            raise Invalid(
                _("Several processes per node need a launcher: choose processes or torchrun."), field="launcher"
            )
    with refusals:
        if worker and how in launcher.STARTED_BY_THE_FIRST:
            raise Invalid(
                _("The first node starts the programs on the others: leave their command empty."),
                field="worker_command",
            )
        if worker and nodes == 1:
            raise Invalid(_("A command for the other nodes needs more than one node."), field="worker_command")
    refusals.end()


def processes_of(command: Program) -> int:
    """Processes on each machine; one for each card where the request leaves it open."""
    if command.launcher == Launcher.ONCE:
        return 1
    return command.processes or max(1, command.job.gpus_per_node)


def is_needed(command: Program) -> bool:
    """Whether the command is started by the launcher at all."""
    return command.job.nodes > 1 or command.launcher != Launcher.ONCE


def started_words(command: Program) -> str:
    """How it is started, and how many processes that makes in all."""
    label = str(dict(Launcher.choices).get(command.launcher, command.launcher))
    if command.launcher == Launcher.FIRST:
        return label
    total = command.job.nodes * processes_of(command)
    processes = ngettext("%(total)s process in total", "%(total)s processes in total", total) % {"total": total}
    return f"{label}, {processes}"


def write(
    command: Program, attempt: Attempt, run: RunDir, argv: list[str], worker: list[str]
) -> tuple[list[str], dict[str, str]]:
    """Write what starts a program on its machines, see `written`.

    Raises:
        CannotRun: its machines have no place to meet, or cannot start programs on each other.
    """
    how, several = command.launcher, command.job.nodes > 1
    if several and how in launcher.STARTED_BY_THE_FIRST and tickets.tier()[0] >= sandbox.CONTAINER:
        raise CannotRun(wording.message("command.needs_exec_server"))
    return written(attempt, run, how=how, slots=processes_of(command), argv=argv, worker=worker)


def written(
    attempt: Attempt, run: RunDir, *, how: str, slots: int, argv: Sequence[str], worker: Sequence[str] = ()
) -> tuple[list[str], dict[str, str]]:
    """Write the launcher, its layout and host files into the run directory.

    Args:
        how: one of `Launcher`.
        slots: processes on each machine.
        argv, worker: what the first machine starts, and what the others do; without `worker` the same.

    Returns:
        What to start instead of `argv`, and the variables that tell of the machines.

    Raises:
        CannotRun: its machines have no place to meet.
    """
    nodes = _nodes(attempt)
    files = hostfile.write(run, [node["address"] for node in nodes], slots)
    layout: dict[str, Any] = {
        "launcher": how,
        "processes": slots,
        "argv": list(argv),
        "worker": list(worker),
        "nodes": nodes,
        "hostfile": str(files.hosts),
        "machinefile": str(files.machines),
        "over": str(run.path / records.EXIT),
    }
    write_json(run.path / LAYOUT, layout)
    program = run.path / PROGRAM
    shutil.copyfile(Path(launcher.__file__), program)
    for path in (run.path / LAYOUT, program):
        path.chmod(0o644)
    variables: dict[str, str] = {}
    if len(nodes) > 1:  # also for what does not go through the launcher, such as a shell inside
        first = nodes[0]
        variables = {"MASTER_ADDR": first["address"], "MASTER_PORT": str(first["port"])} | hostfile.variables(files)
    elif how == Launcher.MPI:
        variables = gang_environment.for_mpi() | hostfile.variables(files)
    return [sys.executable, "-I", "-S", str(program), str(run.path / LAYOUT)], variables


def _nodes(attempt: Attempt) -> list[dict[str, Any]]:
    """Return address and port of each node, by rank."""
    if attempt.job.nodes == 1:
        return [{"address": "127.0.0.1", "port": ALONE_PORT + attempt.pk % 1000}]
    address, port = meeting_place(attempt)
    by_rank: dict[int, dict[str, Any]] = {0: {"address": address, "port": port}}
    rows = Allocation.objects.filter(attempt=attempt, released_at=None).select_related("node").order_by("rank", "pk")
    for held in rows:
        by_rank.setdefault(held.rank, {"address": held.node.address, "port": held.port or port})
    if len(by_rank) < attempt.job.nodes:
        raise CannotRun(_("The nodes have no common rendezvous address. Restore the job."))
    return [by_rank[rank] for rank in sorted(by_rank)]
