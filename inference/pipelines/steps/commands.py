"""Steps for everything else: any command, a message to people."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from accounts.services import named_secrets
from accounts.services.notify import notify
from aiplatform.lib import files, wording
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepKind, completed
from inference.pipelines.models import StepRun
from inference.pipelines.steps import metric_texts, secrets
from inference.pipelines.steps.decisions import people_named
from inference.pipelines.steps.training import figures
from training.programs import request_schemas, variables
from workers.core.models import Job
from workers.jobs.output import files as output_files
from workers.supervisor import secrecy

MAX_BYTES = 1 << 20
MAX_METRICS = 200


class CommandStep(StepKind):
    """Any command as a job."""

    name = "command"
    label = gettext_lazy("Command")
    description = gettext_lazy("Runs any command as a job. Numbers in $AIP_OUTPUT_DIR/metrics.json become metrics.")
    group = "other"
    icon = "code"
    acts = True  # the effects of a command are unknown
    needs = Action.JOBS_SUBMIT
    inputs = (
        Port("data", gettext_lazy("Data"), "dataset", optional=True, many=True),
        Port("after", gettext_lazy("After"), "any", optional=True, many=True),
    )
    outputs = (Port("figures", gettext_lazy("Metrics"), "figures"), Port("items", gettext_lazy("Items"), "list"))
    params = (
        Param("command", gettext_lazy("Command"), form="long", required=True),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=0, low=0, high=128),
        Param("cpus", gettext_lazy("Cores"), form="number", default=1, low=0.1, high=1024),
        Param("secrets", gettext_lazy("Secrets"), form="secrets", default=None, help=gettext_lazy(
            "Names of secrets of the user who runs the pipeline. The command gets each as an environment "
            "variable of the same name.")),
        Param("request", gettext_lazy("Additional fields"), form="json", default=None,
              help=gettext_lazy("JSON with additional fields of the API for custom jobs: image, variables, cluster …")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        request, refusals = params.get("request") or {}, Refusals()
        with refusals:
            if not isinstance(request, Mapping):
                raise Invalid(_("Enter an object: names and values."), field="request")
            secrets.check_request(request)
        with refusals:
            named_secrets.check(user, params.get("secrets") or ())
        refusals.end()

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        body = dict(call.params["request"] or {}) | {
            "name": call.name,
            "command": call.params["command"],
            "gpus_per_node": call.params["gpus"],
            "cpus": call.params["cpus"],
            "secrets": dict.fromkeys(call.params["secrets"] or (), ""),  # the owner's own, by their names
            "datasets": [item["id"] for item in call.inputs.get("data", ())],
        }
        return Begun(job=request_schemas.submit(request_schemas.get("command"), call.user, body))

    def poll(self, row: StepRun) -> Done | None:
        job = completed(row)
        content = _left(job, "metrics.json")
        numbers = {
            str(name)[:80]: value
            for name, value in (content.items() if isinstance(content, dict) else ())
            if is_sound(name) and not isinstance(value, bool) and finite(value) is not None
        }
        outputs: dict[str, Any] = {"figures": figures(dict(list(numbers.items())[:MAX_METRICS]), row)}
        items = _left(job, "items.json")
        if isinstance(items, list) and is_sound(items):
            outputs["items"] = items[:1000]
        return Done(outputs)


def _left(job: Job, name: str) -> Any:
    """What a job wrote to a JSON file in its outputs; None where it is absent or no JSON.

    Secrets are masked as in its log: users who see the pipeline see its metrics with their names.
    """
    root = output_files.folder_of(job, job.attempt_number)
    if root is None:
        return None
    try:
        with os.fdopen(files.open_beneath(root, name), "rb") as file:
            return json.loads(secrecy.masked(file.read(MAX_BYTES), _secrets(job)))
    except (files.OutsideRoot, OSError, ValueError, RecursionError):
        return None


def _secrets(job: Job) -> list[str]:
    """What a command got as secrets, as far as it can be read."""
    row = getattr(job, "command", None)  # absent where the job is of another kind
    try:
        return list(variables.unsealed(row.secrets).values()) if row else []
    except Invalid:
        return []


class NotifyStep(StepKind):
    """A message to people."""

    name = "notify"
    label = gettext_lazy("Notify")
    description = gettext_lazy("Notifies users through their channels: bell, email, webhook.")
    group = "other"
    icon = "mail"
    acts = True
    needs = Action.JOBS_SUBMIT
    inputs = (
        Port("for", gettext_lazy("After"), "any", optional=True, many=True),
        Port(metric_texts.PORT, gettext_lazy("Metrics"), "figures", optional=True, many=True),
    )
    params = (
        Param("text", gettext_lazy("Text"), form="long", required=True, help=metric_texts.HELP),
        Param("people", gettext_lazy("Users"), default="", help=gettext_lazy(
            "Usernames separated by commas. Default: the owner of the run.")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        people_named(params.get("people") or "", user)

    def check_links(self, params: Mapping[str, Any], linked: Mapping[str, Sequence[str]], steps: Iterable[str]) -> None:
        metric_texts.check(params.get("text") or "", linked.get(metric_texts.PORT, ()), steps)

    def start(self, call: Call) -> Begun:
        labels = [str(item["label"]) for item in call.inputs.get("for", ()) if item.get("label")]
        filled, unknown = metric_texts.filled(call.params["text"], call.inputs.get(metric_texts.PORT, ()))
        text = filled + (f" ({', '.join(labels)})" if labels else "")
        missing = metric_texts.unknown_message(unknown)
        title = wording.message(
            "pipeline.news_step", name=call.run.pipeline.name, number=call.run.number, text=text[:400]
        )
        for person in people_named(call.params["people"], call.user):
            notify(
                person,
                "finished",
                title=title,
                text=missing,
                url=f"/pipelines/runs/{call.run.pk}/",
                key=f"pipeline-step-{call.row.pk}",
            )
        return Begun(done=Done(message=missing))
