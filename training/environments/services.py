"""Create development environments, and what their owners ask of them afterwards."""

from __future__ import annotations

import secrets as random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform import env
from aiplatform.lib import sealed, secret_names, titles, units
from aiplatform.lib.errors import Invalid, Refusals
from datasets.files import usage
from datasets.models import DatasetVersion
from training.environments import engine
from training.environments.models import Environment, Input
from training.programs import run_inputs
from training.programs import variables as environ
from training.programs.models import CodeSnapshot
from training.runs import drafts
from training.runs.machine_request import MachineRequest
from workers.core.models import Job
from workers.images.models import Image
from workers.images.store import compatibility
from workers.jobs import submission
from workers.jobs.resource_request import Resources

KIND = "environment"
MAX_IDLE_HOURS = 24 * 365
MAX_FOLDER_LENGTH = 255


@dataclass(frozen=True, kw_only=True)
class EnvironmentRequest(MachineRequest):
    """A requested environment.

    Args:
        name: "" takes one of the person's name.
        description: a sentence for people.
        folder: where JupyterLab opens, in the home; made where it is not there. "" is the home itself.
        code: copied into that folder at the start, but for files that are there already.
        image: what it runs in; None is the built-in engine with JupyterLab.
        datasets: versions it reads, annotated or not.
        variables, secrets: environment; secrets are kept encrypted and starred out in the log.
        idle_hours: after so many idle hours it is stopped; None takes the platform's, which is also the most.
        gpus_per_node: 0 runs on processor cores.
        cpus: cores; None chooses.
        nodes: machines; on more than one JupyterLab runs on the first, and cards and cores are those of each.
        cluster, share, card_memory_mib, memory_mib, priority, preemptible, max_runtime: see `Resources`.
    """

    name: str = ""
    description: str = ""
    folder: str = ""
    code: CodeSnapshot | None = None
    image: Image | None = None
    datasets: Sequence[DatasetVersion] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    idle_hours: float | None = None
    nodes: int = 1


def submit(*, user: User, request: EnvironmentRequest) -> Environment:
    """Queue an environment.

    Raises:
        DomainError: see `check`.
    """
    resources = check(user, request)
    environment = Environment(
        description=" ".join(request.description.split()),
        folder=check_folder(request.folder),
        code=request.code,
        variables=dict(request.variables),
        secrets=sealed.seal(environ.with_stored(user, request.secrets)),
        secret_names=sorted(request.secrets),
        idle_hours=request.idle_hours,
        token=sealed.seal({"token": random.token_urlsafe(32)}),
    )
    with transaction.atomic():
        environment.job = submission.submit(
            owner=user, kind=KIND, name=request.name or name_for(user), spec=_spec(environment, request), **resources
        )
        environment.save(force_insert=True)
        engine.attach(environment.job, request.image)
        Input.objects.bulk_create(
            Input(environment=environment, name=str(version)[:60], version=version) for version in request.datasets
        )
    return environment


def check(user: User, request: EnvironmentRequest) -> Resources:
    """Refuse at once what `submit` refuses, and write nothing; return what the queue needs to know.

    Raises:
        Invalid: a value is wrong, or the image is not for this person.
        VersionNotReady: a dataset is not whole, or not for this person.
        NotAMember: the person does not belong to the cluster.
        NotAllowed: urgent, without the right to it.
        NeverFits, OverLimit: the machines, or a limit, never give what it asks for.
    """
    refusals, resources = Refusals(), Resources()
    with refusals:
        check_parts(
            name=request.name,
            folder=request.folder,
            variables=request.variables,
            secrets=request.secrets,
            idle_hours=request.idle_hours,
        )
    with refusals:
        environ.check_stored(user, request.secrets)
    with refusals:
        usage.require_within_quota(user)
    with refusals:
        engine.check(user, request.image)
    with refusals:
        run_inputs.check(user, request.datasets)
    with refusals:
        resources = {**request.resources(user), "nodes": request.nodes}
        resources["needs"] = compatibility.needs_of(request.image).as_row()
        submission.check(user, KIND, **resources)
    refusals.end()
    return resources


def check_parts(
    *,
    name: str = "",
    folder: str = "",
    variables: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    idle_hours: float | None = None,
) -> None:
    """Refuse at once the parts of a request that `check` refuses regardless of the others."""
    refusals = Refusals()
    with refusals:
        drafts.check_name(name)
    with refusals:
        check_folder(folder)
    with refusals:
        environ.check(variables or {}, field="variables")
    with refusals:
        environ.check(secrets or {}, field="secrets")
    with refusals:
        environ.check_secrets(secrets or {}, variables or {})
    with refusals:
        max_hours = env.ENVIRONMENT_IDLE_HOURS or MAX_IDLE_HOURS
        if idle_hours is not None and not 0 < idle_hours <= max_hours:  # also refuses what is no number
            message = _("Enter more than 0 and at most %(most)s hours.")
            raise Invalid(message % {"most": units.number(max_hours)}, field="idle_hours")
    refusals.end()


def check_folder(folder: str) -> str:
    """The folder as a clean relative path of the home.

    Raises:
        Invalid: a way out, or a name that no folder has.
    """
    path = PurePosixPath(folder.strip().replace("\\", "/"))
    parts = [part for part in path.parts if part not in (".", "~")]
    clean = "/".join(parts)
    if path.is_absolute() or ".." in parts or not clean.isprintable() or len(clean) > MAX_FOLDER_LENGTH:
        raise Invalid(_("A folder in your home, for example work/cells."), field="folder")
    return clean


def name_for(user: User) -> str:
    """A name that no live environment of this person has."""
    rows = Environment.objects.not_deleted().unfinished().filter(job__owner=user)
    taken = set(rows.values_list("job__name", flat=True))
    return titles.derive_name(user.username, "lab", taken=taken, room=40)


def as_request(environment: Environment) -> dict[str, Any]:
    """Return the request that would make this environment again, but for its secrets."""
    job = environment.job
    names = (
        "name", "cluster", "nodes", "gpus_per_node", "device_kind", "device_model", "cpus", "share", "memory_mib",
        "max_disk_bytes", "priority", "preemptible",
    )  # fmt: skip
    own = ("description", "folder", "code", "variables", "idle_hours")
    return (
        {name: getattr(job, name) for name in (*names, "root_inside", "max_runtime")}
        | {name: getattr(environment, name) for name in own}
        | {
            "image": engine.image_of(job),
            "datasets": [row.version for row in environment.inputs.all() if row.version_id],
        }
    )


def token_of(environment: Environment) -> str:
    """The word that JupyterLab asks for.

    Raises:
        Invalid: it was kept under another secret key of the platform.
    """
    return environ.unsealed(environment.token)["token"]


def hidden_in_log(environment: Environment, opened: Sequence[str]) -> list[str]:
    """Texts that are starred out: `opened` (token and secrets), and what is secret by its name among the variables."""
    return [*opened, *secret_names.find_secrets(environment.variables)]


def idle_limit(environment: Environment) -> timedelta | None:
    """After how much idle time it is stopped; None is never. The platform's own limit is the most."""
    hours = [hours for hours in (environment.idle_hours, env.ENVIRONMENT_IDLE_HOURS) if hours]
    return timedelta(hours=min(hours)) if hours else None


def of_job(job: Job) -> Environment | None:
    """Return the workspace of a job; None for a job of another kind, or whose own row is deleted."""
    return Environment.objects.filter(pk=job.pk).select_related("code").first() if job.kind == KIND else None


def _spec(environment: Environment, request: EnvironmentRequest) -> dict[str, Any]:
    """Return everything that defines the workspace, as shown in spec.json and on pages; secrets by name only."""
    spec: dict[str, Any] = {
        "folder": environment.folder,
        "variables": secret_names.mask_params(environment.variables),
        "secrets": environment.secret_names,
        "datasets": run_inputs.spec(request.datasets),
    }
    if environment.code:
        spec["code"] = {"id": environment.code.pk, "origin": environment.code.origin, "files": environment.code.files}
    return spec
