"""What a job's log begins with: where it runs, its network, variables, image and command, as codes and facts."""

from __future__ import annotations

import shlex
import sys
from typing import Any

from workers.core.kinds import Launch
from workers.core.models import Allocation, Attempt, Device
from workers.supervisor import log_lines, sandbox, secrecy
from workers.supervisor.log_lines import line
from workers.supervisor.ticket import Ticket


def build(ticket: Ticket, attempt: Attempt, held: list[Allocation], launch: Launch) -> list[str]:
    """The opening lines of one rank, by what its supervisor receives.

    The supervisor writes them, once, before it starts the command: whoever prepares a run may be killed and begin anew.

    Args:
        held: the rank's allocations with their devices, by device index.
    """
    return [
        *_environment(ticket, attempt, held),
        *_network(ticket, attempt, held),
        line(log_lines.VARIABLES, "given", number=len(ticket.env), secret=_secret(ticket)),
        *launch.notes,
        *_image(ticket),
        line(log_lines.COMMAND, "line", argv=_command(ticket, launch)),
    ]


def _environment(ticket: Ticket, attempt: Attempt, held: list[Allocation]) -> list[str]:
    job = attempt.job
    lines = [line(log_lines.ENVIRONMENT, "attempt", number=attempt.number)]
    if job.retried:
        lines.append(line(log_lines.ENVIRONMENT, "retry", number=job.retried, most=job.retries))
    devices = ",".join(_device(row.device) for row in held)
    facts: dict[str, Any] = {"node": held[0].node.name, "rank": ticket.rank, "nodes": job.nodes, "devices": devices}
    lines += [line(log_lines.ENVIRONMENT, "machine", **facts), line(log_lines.ENVIRONMENT, "sandbox", tier=ticket.tier)]
    if attempt.checkpoint_in:
        lines.append(
            line(log_lines.ENVIRONMENT, "resumes", checkpoint=attempt.checkpoint_in.rstrip("/").rpartition("/")[2])
        )
    return lines


def _device(device: Device) -> str:
    return f"{device.kind}{device.index}" if device.kind != Device.Kind.CPU else str(device.kind)


def _network(ticket: Ticket, attempt: Attempt, held: list[Allocation]) -> list[str]:
    if ticket.own_network and ticket.tier >= sandbox.BUBBLEWRAP:
        lines = [line(log_lines.NETWORK, "own_with_proxy" if ticket.egress_socket else "own")]
    else:
        lines = [line(log_lines.NETWORK, "host")]
    if "AIP_PORT" in ticket.env:
        lines.append(line(log_lines.NETWORK, "port", port=ticket.env["AIP_PORT"]))
    if attempt.job.nodes > 1 and ticket.env.get("MASTER_ADDR"):
        facts = {"address": ticket.env["MASTER_ADDR"], "port": ticket.env.get("MASTER_PORT", "0")}
        lines.append(line(log_lines.NETWORK, "meeting", **facts))
    return lines


def _secret(ticket: Ticket) -> int:
    """How many variables are secret, by their values: names may say nothing of it."""
    hidden = set(ticket.secrets)
    return sum(value in hidden for value in ticket.env.values())


def _image(ticket: Ticket) -> list[str]:
    if ticket.container:
        return [line(log_lines.IMAGE, "container", name=ticket.container.get("image", ""))]
    if not ticket.overlay:
        return [line(log_lines.IMAGE, "platform")]
    lines = [line(log_lines.IMAGE, "engine", layers=len(ticket.overlay.get("layers", ())))]
    return [*lines, line(log_lines.IMAGE, "packages")] if ticket.overlay.get("upper") else lines


def _command(ticket: Ticket, launch: Launch) -> str:
    """The command as it was requested; secrets are starred out before anything is quoted."""
    arguments = ["python" if word == sys.executable else word for word in ticket.argv]
    text = launch.command or shlex.join(_starred(word, ticket) for word in arguments)
    return _starred(text, ticket)


def _starred(text: str, ticket: Ticket) -> str:
    return secrecy.masked(text.encode(), ticket.secrets).decode(errors="replace")
