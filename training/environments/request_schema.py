"""What a request of an environment looks like, for templates and the expert page."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from training import request_initial
from training.environments import services
from training.environments.api import PLACES, EnvironmentIn, request_of
from training.environments.forms import EnvironmentForm, TaskType
from training.environments.models import Environment
from training.request_schemas import Request, RequestSchema
from workers.jobs.resource_request import Resources
from workers.models import Job

#: Fields that stand in a request as they stand in the form.
PLAIN = (
    "name", "description", "folder", "idle_hours", "nodes", "gpus_per_node", "share", "cpus", "preemptible",
    "root_inside",
)  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "name": "", "description": "", "folder": "", "idle_hours": None, "nodes": 1, "gpus_per_node": 0, "share": 8,
    "preemptible": False, "root_inside": False, "device_kind": "gpu", "device_model": "",
    "variables": {}, "secrets": {}, "datasets": [], "priority": 0, "memory_mib": 0, "code": None,
    "image": None, "cluster": None, "max_runtime_s": None,
}  # fmt: skip


def of_form(form: EnvironmentForm) -> dict[str, Any]:
    """The request of a form; what it refuses stands as it was typed."""
    data: dict[str, Any] = {**{name: form.data.get(name, "") for name in form.errors}, **form.cleaned_data}
    requested = form.resources()
    cluster, span = requested.get("cluster"), requested.get("max_runtime")
    return shortened(
        {name: data[name] for name in PLAIN if data.get(name) not in (None, "")}
        | {
            "priority": requested.get("priority", 0),
            "memory_mib": requested.get("memory_mib", 0),
            "device_kind": requested.get("device_kind", "gpu"),
            "device_model": requested.get("device_model", ""),
            "variables": data.get("variables") or {},
            "secrets": data.get("secrets") or {},
            "datasets": [version.pk for version in data.get("datasets") or () if hasattr(version, "pk")],
            "code": data["snapshot"].pk if data.get("snapshot") else None,
            "image": getattr(data.get("image"), "pk", None),
            "cluster": cluster.pk if cluster else None,
            "max_runtime_s": int(span.total_seconds()) if span else None,
        }
    )


def shortened(request: Request) -> dict[str, Any]:
    """A request without what is the default anyway."""
    return {name: value for name, value in request.items() if name not in DEFAULTS or DEFAULTS[name] != value}


def initial(user: User, request: Request) -> dict[str, Any]:
    """Initial values of the form for a request, which may be half wrong."""
    given = DEFAULTS | dict(request)
    several = isinstance(given["nodes"], int) and given["nodes"] > 1
    begun = {name: given[name] for name in PLAIN if name in given}
    return (
        begun
        | request_initial.shared(user, given)
        | {
            "task_type": TaskType.DISTRIBUTED if several else TaskType.REGULAR,
            "nodes": given["nodes"] if several else None,
        }
    )


def of_job(job: Job) -> dict[str, Any]:
    """The request that would make this environment again; secrets by name, to be given anew."""
    environment = Environment.objects.select_related("job__cluster", "code").get(pk=job.pk)
    given = services.as_request(environment)
    span = given.pop("max_runtime")
    request = given | {
        "cluster": given["cluster"].pk,
        "code": given["code"].pk if given["code"] else None,
        "image": given["image"].pk if given["image"] else None,
        "datasets": [version.pk for version in given["datasets"]],
        "secrets": dict.fromkeys(environment.secret_names, ""),
        "max_runtime_s": int(span.total_seconds()) if span else None,
    }
    return shortened(request)


def _submit(user: User, data: dict[str, Any]) -> Job:
    return services.submit(user=user, request=request_of(user, data)).job


def _check(user: User, data: dict[str, Any]) -> Resources:
    fields = {name: value for name, value in data.items() if name not in PLACES}
    return services.check(user, services.EnvironmentRequest(**fields))


SCHEMA = RequestSchema(
    kind=services.KIND,
    serializer=EnvironmentIn,
    form=EnvironmentForm,
    of_form=of_form,
    initial=initial,
    has=lambda job: Environment.objects.filter(pk=job.pk).exists(),
    of_job=of_job,
    check=_check,
    check_parts=services.check_parts,
    submit=_submit,
)
