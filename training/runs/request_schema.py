"""What a request of a training looks like, of a preset or with custom code, for templates and the YAML editor."""

from __future__ import annotations

import contextlib
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import secret_names
from aiplatform.lib.errors import Invalid, Refusals
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.presets.run import Refused
from training.programs import request_body, request_initial
from training.programs.launchers import Launcher
from training.programs.pairs import written_pairs
from training.programs.request_schemas import Request, RequestSchema
from training.runs import drafts, jobs, snippets
from training.runs.api import request_of
from training.runs.drafts import TrainingRequest
from training.runs.forms import OwnCodeForm, SubmitForm
from training.runs.models import TrainingJob
from training.runs.serializers import RequestIn
from workers.core.models import Job
from workers.jobs import submission
from workers.jobs.following import NOTHING
from workers.jobs.resource_request import Resources

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
    "version": None, "eval_version": None, "datasets": [], "after": [], "after_end": [], "outputs_of": [], "retries": 0,
    "retry_pause_s": NOTHING.retry_pause_s, "priority": 0, "memory_mib": 0, "max_disk_bytes": None, "code": None,
    "image": None, "cluster": None, "max_runtime_s": None, "device_kind": "gpu", "device_model": "", "preset": "",
    "min_nodes": 0,
}  # fmt: skip
LINES = ("command", "worker_command", "arguments")


def form_for(data: Any = None, files: Any = None, *, user: User, initial: Any = None) -> SubmitForm:
    """Return the form of a request: that of presets if `data` chooses one, else that of custom code."""
    if data is not None and data.get("preset") in PRESETS:
        return SubmitForm(data, files, user=user, initial=initial)
    return OwnCodeForm(data, files, user=user, initial=initial)


def of_form(form: SubmitForm) -> dict[str, Any]:
    """Return the request of a form; values that the form refuses are kept as typed."""
    data = request_body.typed(form)
    chosen = None if isinstance(form, OwnCodeForm) else PRESETS.get(data.get("preset") or "")
    params = _typed(chosen, form.params_of(chosen)) if chosen else data.get("pairs") or {}
    preset = chosen.name if chosen else data.get("from_preset") or ""
    more = {"params": params, "preset": preset, "min_nodes": data.get("min_nodes") or 0}
    request = request_body.of_form(form, data, PLAIN) | request_body.of_following(form.following())
    versions = {name: request_body.number_of(data.get(name)) for name in ("version", "eval_version")}
    return request_body.shortened(request | versions | more, DEFAULTS)


def _typed(preset: Preset, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with the types that the preset reads; a value that it refuses is kept as typed."""
    typed = dict(params)
    for param in preset.parameters:
        if param.name in typed:
            with contextlib.suppress(Refused):
                typed[param.name] = param.read(typed[param.name])
    return typed


def initial(user: User, request: Request) -> dict[str, Any]:
    """Return initial values of the form for a request, which may be partly invalid."""
    cards = 1 if drafts.card_ids() else 0  # as the service chooses where the text says nothing
    values = DEFAULTS | {"gpus_per_node": cards, "cpus": drafts.default_cpus()} | dict(request)
    params = values["params"]
    begun = {name: values[name] for name in (*PLAIN, "version", "eval_version", "retries", "retry_pause_s")}
    return (
        begun
        | request_initial.shared(user, values)
        | {
            "from_preset": values["preset"],
            "pairs": written_pairs(params) if isinstance(params, dict) else str(params),
            "after": request_body.words_of(values["after"]),
            "after_end": request_body.words_of(values["after_end"]),
            "outputs_of": request_body.words_of(values["outputs_of"]),
        }
    )


def of_job(job: Job) -> dict[str, Any]:
    """Return the request that would create this training again; secrets by name, to be entered again."""
    training = TrainingJob.objects.select_related(
        "job__cluster", "job__owner", "code", "version__dataset", "eval_version"
    ).get(job=job)
    values = jobs.as_request(training)
    secret = snippets.secrets_of(training)
    request = request_body.of_request(values, training.secret_names) | request_body.of_retries(values["following"])
    request |= {
        "params": {name: "" if secret_names.is_secret(name) else value for name, value in values["params"].items()},
        **{name: _without(values[name], secret) for name in LINES},
        **{name: request_body.number_of(values[name]) for name in ("version", "eval_version")},
    }
    return request_body.shortened(request, DEFAULTS)


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
    refusals = Refusals()
    with refusals:
        if not comes and not request.is_own_code and not request.preset:
            raise Invalid(_("Specify a preset, a command, or code with its entry point."), field="command")
        drafts.check(user, request)
    with refusals:
        resources = drafts.resources_of(user, request)
        submission.check(user, jobs.KIND, request.following, **resources)
    refusals.end()
    return resources


def _without(text: str, secrets: list[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "")
    return text


SCHEMA = RequestSchema(
    kind=jobs.KIND,
    serializer=RequestIn,
    form=form_for,
    of_form=of_form,
    initial=initial,
    has=lambda job: TrainingJob.objects.filter(job=job).exists(),
    of_job=of_job,
    check=_check,
    check_parts=drafts.check_parts,
    submit=_submit,
    parameters="params",
    command_lines=LINES,
)
