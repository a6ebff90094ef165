"""Submit any command as a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from accounts.models import User
from aiplatform.lib.errors import Refusals
from training.commands.models import Command, Input
from training.experiments import records
from training.programs import layout, program, requests, run_inputs, script
from training.programs.launchers import Launcher
from training.programs.requests import ProgramRequest
from training.runs import custom_code
from workers.images.services import uses
from workers.jobs import arrays, submission
from workers.jobs.following import like
from workers.jobs.resource_request import Resources

KIND = "command"


@dataclass(frozen=True, kw_only=True)
class CommandRequest(ProgramRequest):
    """A requested command.

    Args:
        command: a command line, or a script; bash runs it unless it begins with "#!".
        output_path: folder in the code whose content counts as the job's outputs.
        writes_checkpoints: it keeps to the checkpoint protocol, so it can be suspended.
        launcher, processes: a `Launcher`, and how many processes it starts on each machine; 0: one for each
            card.
        worker_command: what the other machines run than the first; "" the same.
        array: indices of an array of jobs, see `arrays.parse`; "" is one job.
    """

    command: str
    output_path: str = ""
    writes_checkpoints: bool = False
    launcher: str = Launcher.ONCE
    processes: int = 0
    worker_command: str = ""
    array: str = ""


def submit(*, user: User, request: CommandRequest) -> Command:
    """Queue a custom job, or the requested array of them; return the first.

    Raises:
        DomainError: see `check`.
    """
    resources = check(user, request)
    columns: dict[str, Any] = request.columns(user) | {
        "script": script.normalised(request.command),
        "output_path": custom_code.check_output_path(request.output_path),
        "writes_checkpoints": request.writes_checkpoints,
        "launcher": request.launcher,
        "processes": request.processes,
        "worker_script": script.normalised(request.worker_command),
    }
    fields: dict[str, Any] = {
        "owner": user,
        "kind": KIND,
        "name": request.name or script.name_of(request.command),
        "spec": _spec(Command(**columns), request),
        "following": request.following,
        **resources,
    }
    with transaction.atomic():
        if request.array:
            jobs = submission.submit_array(indices=arrays.parse(request.array), **fields)
        else:
            jobs = [submission.submit(**fields)]
        commands = Command.objects.bulk_create(Command(job=job, **columns) for job in jobs)
        for job in jobs:
            uses.attach(job, request.image)
        Input.objects.bulk_create(
            Input(command=command, name=str(version)[:60], version=version)
            for command in commands
            for version in request.datasets
        )
        records.create_runs(jobs, [{"index": job.array_index} if request.array else {} for job in jobs])
    return commands[0]


def check(user: User, request: CommandRequest) -> Resources:
    """Refuse at once what `submit` refuses, see `requests.check`."""
    return requests.check(
        user, KIND, request, check_parts,
        lambda: layout.check(request.launcher, request.processes, request.worker_command, request.nodes),
        lambda: uses.check(user, request.image),
    )  # fmt: skip


def check_parts(
    *,
    command: str = "true",
    name: str = "",
    output_path: str = "",
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    worker_command: str = "",
    array: str = "",
) -> None:
    """Refuse at once the parts of a request that `check` refuses regardless of the others."""
    refusals = Refusals()
    with refusals:
        requests.check_name(name)
    with refusals:
        script.check(command)
    with refusals:
        if worker_command:
            script.check(worker_command, field="worker_command")
    with refusals:
        if array:
            arrays.parse(array)
    with refusals:
        custom_code.check_output_path(output_path)
    with refusals:
        requests.check_environment(variables, secrets)
    refusals.end()


def as_request(command: Command) -> dict[str, Any]:
    """Return the request that would make this command again, but for its secrets."""
    job = command.job
    own = {
        "command": command.script,
        "output_path": command.output_path,
        "writes_checkpoints": command.writes_checkpoints,
        "launcher": command.launcher,
        "processes": command.processes,
        "worker_command": command.worker_script,
        "array": job.array.indices if job.array else "",
        "following": like(job),
    }
    return requests.as_request(command, own)


def _spec(command: Command, request: CommandRequest) -> dict[str, Any]:
    """Return everything that defines the run, as shown in spec.json and on pages; secrets by name only."""
    return {
        **program.spec(command, nodes=request.nodes),
        "datasets": run_inputs.spec(request.datasets),
        "output_path": command.output_path,
        "checkpoints": command.writes_checkpoints,
        **requests.code_spec(command.code),
    }
