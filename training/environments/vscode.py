"""VS Code of an environment in the browser: found in its image or on its machine, started when somebody opens it."""

from __future__ import annotations

import shlex
from pathlib import Path, PurePosixPath

from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib.errors import DomainError
from datasets.files import homes
from training.environments import jupyter
from training.environments.models import Environment
from workers.access.proxy import addresses, published_ports
from workers.access.proxy.models import PublishedPort
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.execution.exec import channels, programs
from workers.execution.exec.channels import ChannelRefused, Way

NAME = "vscode"  # of the published port
SOCKET = "vscode.sock"  # in TMPDIR
LOG = "vscode.log"  # among the outputs of the job
SERVER = Path(__file__).with_name("serve_vscode.py")
KNOWN = env.CODE_SERVERS
LOOK_S = 15.0
START_S = 30.0
UNKNOWN = "?"  # of an environment that was not looked into yet


class NotStarted(DomainError, code="vscode_not_started"):
    """VS Code does not run, and could not be started."""


def folders() -> list[Path]:
    """What a job must see of the machine to run the operator's program; none where there is none here."""
    program = Path(env.CODE_SERVER)
    return [program.resolve().parents[1]] if env.CODE_SERVER and program.is_file() else []


def find(channel_way: Way) -> str:
    """Return the path of the program in the workspace, as the job sees it; "" for none. Does not use the database.

    Raises:
        ChannelRefused: the job does not answer.
    """
    names = [*([env.CODE_SERVER] if env.CODE_SERVER else []), *KNOWN]
    command = f"for name in {shlex.join(names)}; do command -v -- $name && break; done"
    path = programs.run(channel_way, command, patience_s=LOOK_S).output.strip()
    fits = path.startswith("/") and path.isprintable() and PurePosixPath(path).name in KNOWN
    return path if fits and len(path) <= 255 else ""


def find_or_none(channel_way: Way) -> str:
    """Like `find`, but "" for a workspace that does not respond, so that it delays no others."""
    try:
        return find(channel_way)
    except ChannelRefused:
        return ""


def offer(job: Job, attempt: Attempt, program: str) -> str:
    """Publish the VS Code that was found, so that it can be opened; the name of the program, "" for none."""
    name = PurePosixPath(program).name
    if name:
        _publish(job, attempt, name)
    else:
        PublishedPort.objects.filter(job=job, name=NAME, by_platform=True).delete()
    return name


def start(row: PublishedPort) -> None:
    """Start VS Code for a user who is about to open it; a running one is left alone.

    Raises:
        ChannelRefused: the job cannot be reached now.
        NotStarted: with what to do.
    """
    job = row.job
    environment = Environment.objects.select_related("job__owner").get(pk=job.pk)
    attempt = Attempt.objects.get(job=job, number=job.attempt_number)
    channel_way = channels.way_to(job)
    program = find(channel_way)
    if not program:
        raise NotStarted(_("VS Code is not installed in this workspace any more. Open JupyterLab, or connect by SSH."))
    port = _publish(job, attempt, PurePosixPath(program).name)
    home = homes.home_of(environment.job.owner)
    log = RunDir.for_attempt(job.pk, attempt.number).outputs / LOG
    base = addresses.base_path(job.pk, NAME) if port.keeps_path else "/"
    args = [program, port.socket, base, str(home / environment.folder), str(log)]
    command = f"exec python3 -I - {shlex.join(args)}"
    outcome = programs.run(channel_way, command, stdin=SERVER.read_bytes(), patience_s=START_S).output.strip()
    if outcome == "slow":
        raise NotStarted(_("VS Code is still starting. Try again in a moment."))
    if outcome != "ready":
        raise NotStarted(_("VS Code could not be started. See the file %(log)s of the job.") % {"log": LOG})


def is_offered(environment: Environment) -> bool:
    """Return whether the running attempt has VS Code."""
    is_present = environment.vscode not in ("", UNKNOWN)
    return is_present and environment.attempt == environment.job.attempt_number and addresses.are_ports_enabled()


def _publish(job: Job, attempt: Attempt, program: str) -> PublishedPort:
    """Publish its socket. code-server works without a path prefix; the other program is given its prefix."""
    socket = str(Path(jupyter.socket_path(attempt)).with_name(SOCKET))
    return published_ports.provide(job, name=NAME, socket=socket, keeps_path=program != "code-server")
