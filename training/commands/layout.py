"""How a command is started on its machines: once on each, as several processes, or by torchrun."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.files import write_json
from training.commands import launcher
from training.commands.models import Command
from training.starting import CannotRun, meeting_place
from workers.models import Allocation, Attempt
from workers.runs import RunDir

PROGRAM = "launch.py"
LAYOUT = "layout.json"
HOSTS = "hostfile"
ALONE_PORT = 29500  # torchrun's own, where nobody else has to find it
MOST_PROCESSES = 128


def check(how: str, processes: int, worker: str, nodes: int) -> None:
    """Refuse a way to start that means nothing.

    Raises:
        Invalid: an unknown launcher, too many processes, a command for other machines where there are none.
    """
    found = Refusals()
    with found:
        if how not in Command.Launcher.values:
            names = ", ".join(value for value in Command.Launcher.values)
            raise Invalid(
                _("A command is started in one of these ways: %(names)s.") % {"names": names}, field="launcher"
            )
    with found:
        if not 0 <= processes <= MOST_PROCESSES:
            raise Invalid(
                _("Ask for 0 to %(most)s processes on each machine; 0 is one for each card.")
                % {"most": MOST_PROCESSES},
                field="processes",
            )
    with found:
        if processes > 1 and how == Command.Launcher.ONCE:
            raise Invalid(
                _("Several processes on a machine need a launcher: choose processes or torchrun."), field="launcher"
            )
    with found:
        if worker and nodes == 1:
            raise Invalid(_("A command for the other machines needs more than one machine."), field="worker_command")
    found.end()


def processes_of(command: Command) -> int:
    """Processes on each machine; one for each card where the request leaves it open."""
    if command.launcher == Command.Launcher.ONCE:
        return 1
    return command.processes or max(1, command.job.gpus_per_node)


def is_needed(command: Command) -> bool:
    """Whether the command is started by the launcher at all."""
    return command.job.nodes > 1 or command.launcher != Command.Launcher.ONCE


def write(command: Command, attempt: Attempt, run: RunDir, argv: list[str], worker: list[str]) -> list[str]:
    """Write the launcher, its layout and a host file into the run directory; returns what to start instead of `argv`.

    Raises:
        CannotRun: its machines have no place to meet.
    """
    nodes = _nodes(attempt)
    each = processes_of(command)
    hosts = run.path / HOSTS
    hosts.write_text("".join(f"{node['address']} slots={each}\n" for node in nodes), encoding="utf-8")
    layout: dict[str, Any] = {
        "launcher": command.launcher,
        "processes": each,
        "argv": argv,
        "worker": worker,
        "nodes": nodes,
        "hostfile": str(hosts),
    }
    write_json(run.path / LAYOUT, layout)
    program = run.path / PROGRAM
    shutil.copyfile(Path(launcher.__file__), program)
    for path in (hosts, run.path / LAYOUT, program):
        path.chmod(0o644)
    return [sys.executable, "-I", "-S", str(program), str(run.path / LAYOUT)]


def _nodes(attempt: Attempt) -> list[dict[str, Any]]:
    """Address and port of each machine, by rank."""
    if attempt.job.nodes == 1:
        return [{"address": "127.0.0.1", "port": ALONE_PORT + attempt.pk % 1000}]
    address, port = meeting_place(attempt)
    found: dict[int, dict[str, Any]] = {0: {"address": address, "port": port}}
    rows = Allocation.objects.filter(attempt=attempt, released_at=None).select_related("node").order_by("rank", "pk")
    for held in rows:
        found.setdefault(held.rank, {"address": held.node.address, "port": held.port or port})
    if len(found) < attempt.job.nodes:
        raise CannotRun(_("Its machines have no place to meet. Restore it."))
    return [found[rank] for rank in sorted(found)]
