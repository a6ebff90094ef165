"""What a request of a training looks like, of a preset or with custom code, for templates and the YAML editor."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.secret_names import is_secret
from training.presets.catalog import PRESETS
from training.presets.preset import Preset
from training.presets.run import Refused
from training.programs import request_body
from training.programs.launchers import Launcher
from training.programs.pairs import written_pairs
from training.programs.request_schemas import Request, RequestSchema
from training.programs.serializers import CODE_FIELDS, with_code
from training.runs import drafts, jobs, parameter_sets, snippets
from training.runs.drafts import TrainingRequest
from training.runs.forms import OWN, OwnCodeForm, SubmitForm
from training.runs.models import TrainingJob
from training.runs.querysets import TrainingJobQuerySet
from training.runs.serializers import RequestIn
from workers.jobs import submission
from workers.jobs.resource_request import Resources

LINES = ("command", "worker_command", "arguments")


class TrainingSchema(RequestSchema):
    kind, model, service = jobs.KIND, TrainingJob, jobs
    request, serializer, form_class = TrainingRequest, RequestIn, OwnCodeForm
    plain = (
        "name", "description", "home_path", "start_file", "arguments", "command", "worker_command", "launcher",
        "processes", "output_path", "writes_checkpoints", "extra", "nodes", "gpus_per_node", "share", "cpus",
        "preemptible", "root_inside",
    )  # fmt: skip
    parameters, command_lines = "params", LINES
    check_parts = staticmethod(drafts.check_parts)

    def form(self, data: Any = None, files: Any = None, *, user: User, initial: Any = None) -> SubmitForm:
        """The form of presets if `data` chooses one, else that of custom code."""
        form_class = SubmitForm if data is not None and data.get("preset") in PRESETS else OwnCodeForm
        return form_class(data, files, user=user, initial=initial)

    def more_of_form(self, form: SubmitForm, data: Mapping[str, Any]) -> dict[str, Any]:
        chosen = None if isinstance(form, OwnCodeForm) else PRESETS.get(data.get("preset") or "")
        return {
            "params": _typed(chosen, form.params_of(chosen)) if chosen else data.get("pairs") or {},
            "preset": chosen.name if chosen else data.get("from_preset") or "",
            "min_nodes": data.get("min_nodes") or 0,
            **{name: request_body.number_of(data.get(name)) for name in ("version", "eval_version")},
        }

    def initial(self, user: User, request: Request) -> dict[str, Any]:
        """With the GPUs that the service chooses where the text names none."""
        return super().initial(user, {"gpus_per_node": 1 if drafts.card_ids() else 0} | dict(request))

    def more_initial(self, user: User, request: Request) -> dict[str, Any]:
        params = request["params"]
        return {
            **{name: request[name] for name in ("version", "eval_version")},
            "from_preset": request["preset"],
            "pairs": written_pairs(params) if isinstance(params, dict) else str(params),
        }

    def more_of_clone(self, user: User, row: TrainingJob, values: Mapping[str, Any]) -> dict[str, Any]:
        begun = getattr(row, "set_use", None) and row.set_use.version_id
        return {
            **{name: values[name] for name in ("version", "eval_version")},
            "preset": values["preset"] or OWN,
            "pairs": "" if values["preset"] else written_pairs(values["params"]),
            "set_version": parameter_sets.versions_for(user).filter(pk=begun or 0).values_list("pk", flat=True).first(),
        }

    def copies(self, user: User) -> TrainingJobQuerySet:
        """Without previews, layer views and profiles."""
        rows: TrainingJobQuerySet = super().copies(user).without_looks()
        return rows

    def shown(self, row: TrainingJob, request: dict[str, Any]) -> dict[str, Any]:
        """Without the secrets in parameters and command lines."""
        secret = snippets.secrets_of(row)
        return request | {
            "params": {name: "" if is_secret(name) else value for name, value in request["params"].items()},
            **{name: _without(request[name], secret) for name in LINES},
            **{name: request_body.number_of(request[name]) for name in ("version", "eval_version")},
        }

    def read(self, user: User, data: dict[str, Any]) -> TrainingRequest:
        fields_in = {**data, "command": data["command"].strip()}
        fields = with_code(
            user, fields_in, lambda values: drafts.check_parts(**{name: values[name] for name in drafts.PARTS})
        )
        return TrainingRequest(**fields)

    def check(self, user: User, data: dict[str, Any]) -> Resources:
        comes = any(data.get(name) for name in CODE_FIELDS)  # what is in it is seen once it is taken
        fields = {name: value for name, value in data.items() if name not in CODE_FIELDS}
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


def _typed(preset: Preset, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters with the types that the preset reads; a value that it refuses is kept as typed."""
    typed = dict(params)
    for param in preset.parameters:
        if param.name in typed:
            with contextlib.suppress(Refused):
                typed[param.name] = param.read(typed[param.name])
    return typed


def _without(text: str, secrets: list[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "")
    return text


SCHEMA = TrainingSchema()
