"""What a request of an environment looks like, for templates and the expert page."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from training.environments import services
from training.environments.api import CODE_FIELDS, EnvironmentIn, request_of
from training.environments.forms import EnvironmentForm, TaskType
from training.environments.models import Environment
from training.programs import request_body, request_initial
from training.programs.request_schemas import Request, RequestSchema
from training.runs import drafts
from workers.core.models import Job
from workers.jobs.resource_request import Resources

#: Fields that stand in a request as they stand in the form.
PLAIN = (
    "name", "description", "folder", "idle_hours", "nodes", "gpus_per_node", "share", "cpus", "preemptible",
    "root_inside",
)  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "name": "", "description": "", "folder": "", "idle_hours": None, "nodes": 1, "gpus_per_node": 0, "share": 8,
    "preemptible": False, "root_inside": False, "device_kind": "gpu", "device_model": "",
    "variables": {}, "secrets": {}, "datasets": [], "priority": 0, "memory_mib": 0, "max_disk_bytes": None,
    "code": None, "image": None, "cluster": None, "max_runtime_s": None,
}  # fmt: skip


def of_form(form: EnvironmentForm) -> dict[str, Any]:
    """Return the request of a form; refused values are kept as typed."""
    return request_body.shortened(request_body.of_form(form, request_body.typed(form), PLAIN), DEFAULTS)


def initial(user: User, request: Request) -> dict[str, Any]:
    """Return initial values of the form for a request, which may be partly invalid."""
    values = DEFAULTS | {"cpus": drafts.default_cpus()} | dict(request)
    several = isinstance(values["nodes"], int) and values["nodes"] > 1
    begun = {name: values[name] for name in PLAIN if name in values}
    return (
        begun
        | request_initial.shared(user, values)
        | {
            "task_type": TaskType.DISTRIBUTED if several else TaskType.REGULAR,
            "nodes": values["nodes"] if several else None,
        }
    )


def of_job(job: Job) -> dict[str, Any]:
    """Return the request that would create this workspace again; secrets by name, to be entered again."""
    environment = Environment.objects.select_related("job__cluster", "code").get(pk=job.pk)
    request = request_body.of_request(services.as_request(environment), environment.secret_names)
    return request_body.shortened(request, DEFAULTS)


def _submit(user: User, data: dict[str, Any]) -> Job:
    return services.submit(user=user, request=request_of(user, data)).job


def _check(user: User, data: dict[str, Any]) -> Resources:
    fields = {name: value for name, value in data.items() if name not in CODE_FIELDS}
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
