"""What a request of a command looks like, for templates and the expert page."""

from __future__ import annotations

from typing import Any

from accounts.models import User
from training.commands import services
from training.commands.api import CommandIn, request_of
from training.commands.forms import CommandForm
from training.commands.models import Command
from training.programs import request_body, request_initial
from training.programs.request_schemas import Request, RequestSchema
from training.runs import drafts
from workers.core.models import Job
from workers.jobs.following import NOTHING
from workers.jobs.resource_request import Resources

#: Fields that stand in a request as they stand in the form.
PLAIN = (
    "command", "name", "output_path", "home_path", "writes_checkpoints", "nodes", "gpus_per_node", "share", "cpus",
    "launcher", "processes", "worker_command", "array", "preemptible", "root_inside",
)  # fmt: skip
DEFAULTS: dict[str, Any] = {
    "name": "", "output_path": "", "home_path": "", "writes_checkpoints": False, "nodes": 1, "gpus_per_node": 0,
    "share": 8, "launcher": "once", "processes": 0, "worker_command": "", "array": "", "preemptible": False,
    "root_inside": False,
    "variables": {}, "secrets": {}, "datasets": [], "after": [], "after_end": [], "outputs_of": [], "retries": 0,
    "priority": 0,
    "retry_pause_s": NOTHING.retry_pause_s, "memory_mib": 0, "max_disk_bytes": None, "code": None, "image": None,
    "cluster": None, "max_runtime_s": None, "device_kind": "gpu", "device_model": "",
}  # fmt: skip


def of_form(form: CommandForm) -> dict[str, Any]:
    """Return the request of a form; refused values are kept as typed."""
    request = request_body.of_form(form, request_body.typed(form), PLAIN) | request_body.of_following(form.following())
    return request_body.shortened(request, DEFAULTS)


def initial(user: User, request: Request) -> dict[str, Any]:
    """Return initial values of the form for a request, which may be partly invalid."""
    values = DEFAULTS | {"cpus": drafts.default_cpus()} | dict(request)
    begun = {name: values[name] for name in PLAIN if name in values}
    return (
        begun
        | request_initial.shared(user, values)
        | {
            "after": request_body.words_of(values["after"]),
            "after_end": request_body.words_of(values["after_end"]),
            "outputs_of": request_body.words_of(values["outputs_of"]),
            "retries": values["retries"],
            "retry_pause_s": values["retry_pause_s"],
        }
    )


def of_job(job: Job) -> dict[str, Any]:
    """Return the request that would create this custom job again; secrets by name, to be entered again."""
    command = Command.objects.select_related("job__cluster", "job__array", "code").get(pk=job.pk)
    values = services.as_request(command)
    request = request_body.of_request(values, command.secret_names) | request_body.of_retries(values["following"])
    return request_body.shortened(request, DEFAULTS)


def _submit(user: User, data: dict[str, Any]) -> Job:
    return services.submit(user=user, request=request_of(user, data)).job


def _check(user: User, data: dict[str, Any]) -> Resources:
    places = ("code_upload", "code_archive", "home_path")
    fields = {name: value for name, value in data.items() if name not in places}
    return services.check(user, services.CommandRequest(**fields))


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
