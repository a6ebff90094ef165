"""Create development environments, and what their owners ask of them afterwards."""

from __future__ import annotations

import secrets as random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from training.environments import engine
from training.environments.models import Environment, Input
from training.programs import requests, run_inputs
from training.programs import variables as environ
from training.programs.requests import ProgramRequest
from workers.core.models import Job
from workers.jobs import submission
from workers.jobs.resource_request import Resources

KIND = "environment"
MAX_IDLE_HOURS = 24 * 365
MAX_FOLDER_LENGTH = 255


@dataclass(frozen=True, kw_only=True)
class EnvironmentRequest(ProgramRequest):
    """A requested environment.

    Args:
        description: a sentence for people.
        folder: where JupyterLab opens, in the home; made where it is not there. "" is the home itself. The code is
            copied there at the start, but for files that are there already.
        idle_hours: after so many idle hours it is stopped; None takes the platform's, which is also the most.
        nodes: machines; on more than one JupyterLab runs on the first, and cards and cores are those of each.
    """

    description: str = ""
    folder: str = ""
    idle_hours: float | None = None


def submit(*, user: User, request: EnvironmentRequest) -> Environment:
    """Queue an environment.

    Raises:
        DomainError: see `check`.
    """
    resources = check(user, request)
    environment = Environment(
        **request.columns(user),
        description=" ".join(request.description.split()),
        folder=check_folder(request.folder),
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
    """Refuse at once what `submit` refuses, see `requests.check`."""
    return requests.check(
        user, KIND, request, check_parts,
        lambda: usage.require_within_quota(user),
        lambda: engine.check(user, request.image),
    )  # fmt: skip


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
        requests.check_name(name)
    with refusals:
        check_folder(folder)
    with refusals:
        requests.check_environment(variables, secrets)
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
    own = {name: getattr(environment, name) for name in ("description", "folder", "idle_hours")}
    return requests.as_request(environment, own) | {"image": engine.image_of(environment.job)}


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
    return {
        "folder": environment.folder,
        "variables": secret_names.mask_params(environment.variables),
        "secrets": environment.secret_names,
        "datasets": run_inputs.spec(request.datasets),
        **requests.code_spec(environment.code),
    }
