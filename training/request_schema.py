"""What a request of a training with own code looks like, for templates and the expert page.

Trainings of presets have a page of their own, whose parameters are saved as parameter sets.
"""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import secret_names
from aiplatform.lib.errors import Invalid, Refusals
from training import request_initial
from training.api.jobs import request_of
from training.api.serializers import OwnCodeIn
from training.forms import OwnCodeForm
from training.models import TrainingJob
from training.pairs import written_pairs
from training.programs.launchers import Launcher
from training.request_schemas import Request, RequestSchema
from training.services import drafts, jobs, snippets
from training.services.drafts import TrainingRequest
from workers.jobs import submission
from workers.jobs.following import NOTHING, Following
from workers.jobs.resource_request import Resources
from workers.models import Job

#: Fields that stand in a request as they stand in the form.
PLAIN = (
    "name", "description", "home_path", "start_file", "arguments", "command", "worker_command", "launcher",
    "processes", "output_path", "writes_checkpoints", "extra", "nodes", "gpus_per_node", "share", "cpus",
    "preemptible", "root_inside",
)  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "name": "", "description": "", "home_path": "", "start_file": "", "arguments": "", "command": "",
    "worker_command": "", "launcher": "", "processes": 0, "output_path": "", "writes_checkpoints": False, "extra": "",
    "nodes": 1, "share": 8, "preemptible": False, "root_inside": False, "params": {}, "variables": {}, "secrets": {},
    "version": None, "eval_version": None, "datasets": [], "after": [], "after_end": [], "retries": 0,
    "retry_pause_s": NOTHING.retry_pause_s, "priority": 0, "memory_mib": 0, "code": None, "image": None,
    "cluster": None, "max_runtime_s": None, "device_kind": "gpu", "device_model": "",
}  # fmt: skip
LINES = ("command", "worker_command", "arguments")
"""A larger number is no memory of any machine, and may be too large to be divided."""


def of_form(form: OwnCodeForm) -> dict[str, Any]:
    """The request of a form; what it refuses stands as it was typed."""
    data: dict[str, Any] = {**{name: form.data.get(name, "") for name in form.errors}, **form.cleaned_data}
    requested, following = form.resources(), form.following()
    cluster, span = requested.get("cluster"), requested.get("max_runtime")
    return shortened(
        {name: data[name] for name in PLAIN if data.get(name) not in (None, "")}
        | {name: _number(data.get(name)) for name in ("version", "eval_version", "image")}
        | {
            "params": data.get("pairs") or {},
            "priority": requested.get("priority", 0),
            "memory_mib": requested.get("memory_mib", 0),
            "device_kind": requested.get("device_kind", "gpu"),
            "device_model": requested.get("device_model", ""),
            "variables": data.get("variables") or {},
            "secrets": data.get("secrets") or {},
            "datasets": [version.pk for version in data.get("datasets") or () if hasattr(version, "pk")],
            "after": list(following.after),
            "after_end": list(following.after_end),
            "retries": following.retries,
            "retry_pause_s": following.retry_pause_s,
            "code": _number(data.get("snapshot")),
            "cluster": cluster.pk if cluster else None,
            "max_runtime_s": int(span.total_seconds()) if span else None,
        }
    )


def shortened(request: Request) -> dict[str, Any]:
    """A request without what is the default anyway."""
    return {name: value for name, value in request.items() if name not in DEFAULTS or DEFAULTS[name] != value}


def initial(user: User, request: Request) -> dict[str, Any]:
    """Initial values of the form for a request, which may be half wrong."""
    cards = 1 if drafts.card_ids() else 0  # as the service chooses where the text says nothing
    given = DEFAULTS | {"gpus_per_node": cards, "cpus": drafts.default_cpus()} | dict(request)
    params = given["params"]
    begun = {name: given[name] for name in (*PLAIN, "version", "eval_version", "retries", "retry_pause_s")}
    return (
        begun
        | request_initial.shared(user, given)
        | {
            "pairs": written_pairs(params) if isinstance(params, dict) else str(params),
            "after": _numbers(given["after"]),
            "after_end": _numbers(given["after_end"]),
        }
    )


def of_job(job: Job) -> dict[str, Any]:
    """The request that would make this training again; secrets by name, to be given anew."""
    training = TrainingJob.objects.select_related(
        "job__cluster", "job__owner", "code", "version__dataset", "eval_version"
    ).get(job=job)
    given = jobs.as_request(training)
    del given["preset"]
    following: Following = given.pop("following")
    span = given.pop("max_runtime")
    secret = snippets.secrets_of(training)
    request = given | {
        "params": {name: "" if secret_names.is_secret(name) else value for name, value in given["params"].items()},
        **{name: _without(given[name], secret) for name in LINES},
        "cluster": given["cluster"].pk,
        **{name: _number(given[name]) for name in ("code", "image", "version", "eval_version")},
        "datasets": [version.pk for version in given["datasets"]],
        "secrets": dict.fromkeys(training.secret_names, ""),
        "retries": following.retries,
        "retry_pause_s": following.retry_pause_s,
        "max_runtime_s": int(span.total_seconds()) if span else None,
    }
    return shortened(request)


def _submit(user: User, data: dict[str, Any]) -> Job:
    return jobs.submit(user=user, request=request_of(user, data)).job


def _check(user: User, data: dict[str, Any]) -> Resources:
    places = ("code_upload", "code_archive", "home_path")
    comes = any(data.get(name) for name in places)  # what is in it is seen once it is taken
    fields = {name: value for name, value in data.items() if name not in places}
    if comes and data["start_file"] and not data["command"]:
        several = data["nodes"] > 1 or data["processes"] > 1
        launcher = data["launcher"] or (Launcher.TORCHRUN if several else Launcher.ONCE)
        fields |= {"start_file": "", "command": "true", "launcher": launcher}
    request = TrainingRequest(**fields)
    found = Refusals()
    with found:
        if not comes and not request.is_own_code:
            raise Invalid(_("Give a command, or code of yours with its start file."), field="command")
        drafts.check(user, request)
    with found:
        resources = drafts.resources_of(user, request)
        submission.check(user, jobs.KIND, request.following, **resources)
    found.end()
    return resources


def _number(row: Any) -> Any:
    return getattr(row, "pk", row) or None


def _numbers(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)


def _without(text: str, secrets: list[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "")
    return text


SCHEMA = RequestSchema(
    kind=jobs.KIND,
    serializer=OwnCodeIn,
    form=OwnCodeForm,
    of_form=of_form,
    initial=initial,
    has=lambda job: TrainingJob.objects.filter(job=job, preset="").exists(),
    of_job=of_job,
    check=_check,
    check_parts=drafts.check_parts,
    submit=_submit,
    parameters="params",
    command_lines=LINES,
)
