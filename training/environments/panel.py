"""The part of a job's page that tells of its environment: whether it answers, until when it runs, what is kept."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform import env
from datasets.files import usage
from training.environments import engine, idle_release, jupyter_access, lifecycle, services, several, vscode
from training.environments.actions import HOURS
from training.environments.models import Environment
from workers.access.proxy import addresses
from workers.core import run_time
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import JobState
from workers.jobs import buttons

#: What an environment that runs is doing, by a code that scripts match on.
CONDITIONS = {
    "starting": _("JupyterLab is starting"),
    "ready": _("Ready"),
    "silent": _("JupyterLab does not respond"),
    "idle": _("Inactive, stopped soon"),
}


def context(job: Job, user: User) -> dict[str, Any] | None:
    """What the panel shows; None for a job of another kind."""
    environment = services.of_job(job)
    if environment is None:
        return None
    environment.job = job
    return facts(environment, user) | {
        "machines": several.machines(job),
        "full_home": usage.find_over_quota(job.owner),
        "home_quota": env.HOME_QUOTA_BYTES,
    }


def facts(environment: Environment, user: User) -> dict[str, Any]:
    """Return current facts of a workspace for its page, lists and the API. Rows of `for_list` need no query."""
    job, moment = environment.job, now()
    live = getattr(job, "live_attempts", None)  # fetched with the list
    live = job.attempts.filter(ended_at=None) if live is None else live
    attempt = next((candidate for candidate in live if candidate.number == job.attempt_number), None)
    condition = condition_of(environment)
    limit = services.idle_limit(environment)
    own = user.pk == job.owner_id
    may_control = user.can(Action.JOBS_CONTROL) and (own or user.sees_everything)
    image, can_save = engine.words(job)
    return {
        "environment": environment,
        "condition": condition,
        "words": CONDITIONS.get(condition, ""),
        "open_url": jupyter_access.url(job),
        "may_open": bool(jupyter_access.url(job))
        and own
        and user.can(Action.JOBS_CONTROL)
        and condition in ("ready", "idle"),
        "vscode_url": reverse("ports:open", args=[job.pk, vscode.NAME]) if vscode.is_offered(environment) else "",
        "own": own,
        "may_control": may_control,
        "buttons": [button for button in buttons.shown(job) if button.allowed] if may_control else [],
        "has_ports": own and addresses.are_ports_enabled() and job.state == JobState.RUNNING,
        "can_save": own and can_save,
        "left": run_time.left(job, attempt, moment) if attempt else None,
        "has_limit": run_time.runtime(job) is not None,
        "hours": HOURS,
        "idle_s": idle_release.idle_for(environment, moment).total_seconds(),
        "idle_limit": limit,
        "stops_at": lifecycle.stops_at(environment) if condition in ("ready", "idle", "silent") else None,
        "image": image,
    }


def condition_of(environment: Environment) -> str:
    """A code of `CONDITIONS`; "" while it does not run, when the state of its job says all."""
    if environment.job.state != JobState.RUNNING:
        return ""
    if not lifecycle.is_ready(environment):
        return "starting"
    if environment.warned_at is not None or environment.gives_at is not None:
        return "idle"
    looked, answered = environment.looked_at, environment.answered_at
    return "silent" if looked and answered and looked - answered > lifecycle.SILENCE_TIMEOUT else "ready"
