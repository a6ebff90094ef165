"""What a request of a command looks like, for templates and the expert page."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from training import request_initial
from training.commands import services
from training.commands.api import CommandIn, request_of
from training.commands.forms import CommandForm
from training.commands.models import Command
from training.request_schemas import Request, RequestSchema
from workers.jobs.following import NOTHING, Following
from workers.jobs.resource_request import Resources
from workers.models import Job

#: Fields that stand in a request as they stand in the form.
PLAIN = (
    "command", "name", "output_path", "home_path", "writes_checkpoints", "nodes", "gpus_per_node", "share", "cpus",
    "launcher", "processes", "worker_command", "array", "preemptible", "root_inside",
)  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "name": "", "output_path": "", "home_path": "", "writes_checkpoints": False, "nodes": 1, "gpus_per_node": 0,
    "share": 8, "launcher": "once", "processes": 0, "worker_command": "", "array": "", "preemptible": False,
    "root_inside": False,
    "variables": {}, "secrets": {}, "datasets": [], "after": [], "after_end": [], "retries": 0, "priority": 0,
    "retry_pause_s": NOTHING.retry_pause_s, "memory_mib": 0, "code": None, "image": None,
    "cluster": None, "max_runtime_s": None, "device_kind": "gpu", "device_model": "",
}  # fmt: skip

"""A larger number is no memory of any machine, and may be too large to be divided."""


def of_form(form: CommandForm) -> dict[str, Any]:
    """The request of a form; what it refuses stands as it was typed."""
    data: dict[str, Any] = {**{name: form.data.get(name, "") for name in form.errors}, **form.cleaned_data}
    found = {name: data[name] for name in PLAIN if data.get(name) not in (None, "")}
    requested = form.resources()
    following = form.following()
    found |= {
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
        "code": data["snapshot"].pk if data.get("snapshot") else None,
        "image": getattr(data.get("image"), "pk", None),
    }
    cluster, span = requested.get("cluster"), requested.get("max_runtime")
    found |= {"cluster": cluster.pk if cluster else None, "max_runtime_s": int(span.total_seconds()) if span else None}
    return shortened(found)


def shortened(request: Request) -> dict[str, Any]:
    """A request without what is the default anyway."""
    return {name: value for name, value in request.items() if name not in DEFAULTS or DEFAULTS[name] != value}


def initial(user: User, request: Request) -> dict[str, Any]:
    """Initial values of the form for a request, which may be half wrong."""
    given = DEFAULTS | dict(request)
    begun = {name: given[name] for name in PLAIN if name in given}
    return (
        begun
        | request_initial.shared(user, given)
        | {
            "after": _numbers(given["after"]),
            "after_end": _numbers(given["after_end"]),
            "retries": given["retries"],
            "retry_pause_s": given["retry_pause_s"],
        }
    )


def of_job(job: Job) -> dict[str, Any]:
    """The request that would make this command again; secrets by name, to be given anew."""
    command = Command.objects.select_related("job__cluster", "job__array", "code").get(pk=job.pk)
    given = services.as_request(command)
    following: Following = given.pop("following")
    span = given.pop("max_runtime")
    request = given | {
        "cluster": given["cluster"].pk,
        "code": given["code"].pk if given["code"] else None,
        "image": given["image"].pk if given["image"] else None,
        "datasets": [version.pk for version in given["datasets"]],
        "secrets": dict.fromkeys(command.secret_names, ""),
        "retries": following.retries,
        "retry_pause_s": following.retry_pause_s,
        "max_runtime_s": int(span.total_seconds()) if span else None,
    }
    return shortened(request)


def _submit(user: User, data: dict[str, Any]) -> Job:
    return services.submit(user=user, request=request_of(user, data)).job


def _check(user: User, data: dict[str, Any]) -> Resources:
    places = ("code_upload", "code_archive", "home_path")
    fields = {name: value for name, value in data.items() if name not in places}
    return services.check(user, services.CommandRequest(**fields))


def _numbers(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)


SCHEMA = RequestSchema(
    kind=services.KIND,
    serializer=CommandIn,
    form=CommandForm,
    of_form=of_form,
    initial=initial,
    has=lambda job: Command.objects.filter(pk=job.pk).exists(),
    of_job=of_job,
    check=_check,
    check_parts=services.check_parts,
    submit=_submit,
)
