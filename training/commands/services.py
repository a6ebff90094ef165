"""Submit any command as a job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db import transaction

from accounts.models import User
from aiplatform.lib import sealed
from aiplatform.lib.errors import Refusals
from datasets.models import DatasetVersion
from training.commands.models import Command, Input
from training.experiments import records
from training.programs import layout, program, run_inputs, script
from training.programs import variables as environment
from training.programs.launchers import Launcher
from training.programs.models import CodeSnapshot
from training.runs import custom_code, drafts
from training.runs.machine_request import MachineRequest
from workers.images.models import Image
from workers.images.services import uses
from workers.images.store import compatibility
from workers.jobs import arrays, submission
from workers.jobs.following import NOTHING, Following, like
from workers.jobs.resource_request import Resources

KIND = "command"


@dataclass(frozen=True, kw_only=True)
class CommandRequest(MachineRequest):
    """A requested command.

    Args:
        command: a command line, or a script; bash runs it unless it begins with "#!".
        name: "" takes one of the command.
        cluster: None takes the person's current one.
        code: what its folder begins with; None: nothing.
        image: where its programs come from; None: the platform's own.
        output_path: folder in the code whose content counts as the job's outputs.
        datasets: versions it reads, annotated or not.
        variables, secrets: environment; secrets are kept encrypted and starred out in the log. One without a value
            is what the person keeps under that name.
        writes_checkpoints: it keeps to the checkpoint protocol, so it can be suspended.
        gpus_per_node: 0 runs on processor cores.
        cpus: cores per node; None chooses.
        launcher, processes: a `Launcher`, and how many processes it starts on each machine; 0: one for each
            card.
        worker_command: what the other machines run than the first; "" the same.
        array: indices of an array of jobs, see `arrays.parse`; "" is one job.
        following: jobs that come first, and retries.
        nodes, share, card_memory_mib, memory_mib, priority, preemptible, max_runtime: see `Resources`.
    """

    command: str
    name: str = ""
    code: CodeSnapshot | None = None
    image: Image | None = None
    output_path: str = ""
    datasets: Sequence[DatasetVersion] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    writes_checkpoints: bool = False
    launcher: str = Launcher.ONCE
    processes: int = 0
    worker_command: str = ""
    array: str = ""
    following: Following = NOTHING
    nodes: int = 1


def submit(*, user: User, request: CommandRequest) -> Command:
    """Queue a custom job, or the requested array of them; return the first.

    Raises:
        DomainError: see `check`.
    """
    resources = check(user, request)
    request = replace(request, secrets=environment.with_stored(user, request.secrets))
    columns: dict[str, Any] = {
        "script": script.normalised(request.command),
        "code": request.code,
        "output_path": custom_code.check_output_path(request.output_path),
        "variables": dict(request.variables),
        "secrets": sealed.seal(request.secrets),
        "secret_names": sorted(request.secrets),
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
    """Refuse at once what `submit` refuses, and write nothing; return what the queue needs to know.

    Raises:
        Invalid: a value is wrong.
        VersionNotReady: a dataset is not whole, or not for this person.
        NotAMember: the person does not belong to the cluster.
        NotAllowed: urgent, without the right to it.
        NeverFits, OverLimit: the machines, or a limit, never give what it asks for.
    """
    refusals, resources = Refusals(), Resources()
    with refusals:
        check_parts(
            command=request.command,
            name=request.name,
            output_path=request.output_path,
            variables=request.variables,
            secrets=request.secrets,
            worker_command=request.worker_command,
            array=request.array,
        )
    with refusals:
        environment.check_stored(user, request.secrets)
    with refusals:
        layout.check(request.launcher, request.processes, request.worker_command, request.nodes)
    with refusals:
        run_inputs.check(user, request.datasets)
    with refusals:
        uses.check(user, request.image)
    with refusals:
        resources = resources_of(user, request)
        submission.check(user, KIND, request.following, **resources)
    refusals.end()
    return resources


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
        drafts.check_name(name)
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
        environment.check(variables or {}, field="variables")
    with refusals:
        environment.check(secrets or {}, field="secrets")
    with refusals:
        environment.check_secrets(secrets or {}, variables or {})
    refusals.end()


def resources_of(user: User, request: CommandRequest) -> Resources:
    """What a request asks of the machines, whatever else is wrong with it."""
    return {**request.resources(user), "nodes": request.nodes, "needs": compatibility.needs_of(request.image).as_row()}


def as_request(command: Command) -> dict[str, Any]:
    """Return the request that would make this command again, but for its secrets."""
    job = command.job
    names = (
        "name", "cluster", "nodes", "gpus_per_node", "device_kind", "device_model", "cpus", "share", "memory_mib",
        "max_disk_bytes", "priority", "preemptible", "root_inside", "max_runtime",
    )  # fmt: skip
    return {name: getattr(job, name) for name in names} | {
        "command": command.script,
        "code": command.code,
        "image": uses.image_of(job),
        "output_path": command.output_path,
        "datasets": [row.version for row in command.inputs.all() if row.version_id],
        "variables": command.variables,
        "writes_checkpoints": command.writes_checkpoints,
        "launcher": command.launcher,
        "processes": command.processes,
        "worker_command": command.worker_script,
        "array": job.array.indices if job.array else "",
        "following": like(job),
    }


def _spec(command: Command, request: CommandRequest) -> dict[str, Any]:
    """Return everything that defines the run, as shown in spec.json and on pages; secrets by name only."""
    spec: dict[str, Any] = {
        **program.spec(command, nodes=request.nodes),
        "datasets": run_inputs.spec(request.datasets),
        "output_path": command.output_path,
        "checkpoints": command.writes_checkpoints,
    }
    if command.code:
        spec["code"] = {"id": command.code.pk, "origin": command.code.origin, "files": command.code.files}
    return spec
