"""Steps that train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import Invalid
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepKind, completed
from inference.pipelines.models import StepRun, reference
from inference.pipelines.steps import bodies, rows, secrets
from inference.registry.models import ModelVersion
from training.presets.catalog import PRESETS
from training.programs.request_schemas import body_of
from training.runs import drafts, jobs
from training.runs.api import request_of
from training.runs.models import TrainingJob
from training.runs.serializers import TrainingIn
from workers.core.models import Job

#: What a step says itself, so that `request` may not.
OWN = ("version", "name", "preset", "params", "parent", "explicit")


class TrainStep(StepKind):
    """A training, of a preset or of own code."""

    name = "train"
    label = gettext_lazy("Train")
    description = gettext_lazy("Trains a model on a dataset version, with a preset or custom code.")
    group = "train"
    icon = "training"
    computes = True
    needs = Action.TRAINING_SUBMIT
    inputs = (
        Port("data", gettext_lazy("Data"), "dataset"),
        Port("weights", gettext_lazy("Starts with"), "model", optional=True),
    )
    outputs = (Port("model", gettext_lazy("Model"), "model"), Port("figures", gettext_lazy("Metrics"), "figures"))
    params = (
        Param("preset", gettext_lazy("Preset"), default="", help=gettext_lazy(
            "Leave empty for the project "
            "created for the data.")),
        Param("params", gettext_lazy("Parameters"), form="json", default=None,
              help=gettext_lazy("JSON, such as {\"epochs\": 3}; others have the defaults of the preset.")),
        Param("minutes", gettext_lazy("Time budget in minutes"), form="number", default=None, low=0.1, high=100_000,
              help=gettext_lazy("Ends successfully when the time is used; presets only.")),
        Param("model", gettext_lazy("Model name"), default="", help=gettext_lazy(
            "Model that gets a version. Default: named after the pipeline and the step.")),
        Param("gpus", gettext_lazy("GPUs"), form="whole", default=None, low=0, high=128,
              help=gettext_lazy("Leave empty to require one if any exist.")),
        Param("cpus", gettext_lazy("Cores"), form="number", default=None, low=0.1, high=1024),
        Param("request", gettext_lazy("Additional fields"), form="json", default=None,
              help=gettext_lazy("JSON with additional fields of the API for training jobs: command, cluster, nodes …")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        bodies.check(params, OWN)
        secrets.check_own_code(user, params.get("request"), params.get("params"))
        preset = params.get("preset")
        if preset and preset not in PRESETS:
            names = ", ".join(sorted(PRESETS))
            raise Invalid(_("Unknown preset “%(name)s”. Available "
                            "presets: %(known)s.") % {"name": preset, "known": names},
                          field="preset")  # fmt: skip

    def content(self, call: Call) -> Mapping[str, Any] | None:
        """Own code may do anything, so only presets are taken from earlier runs."""
        return {} if not call.params["request"] else None

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        body = dict(call.params["request"] or {})
        params = dict(call.params["params"] or {})
        if call.params["minutes"] is not None:
            params["budget_minutes"] = call.params["minutes"]
        if weights := call.only("weights"):
            params["weights"] = f"model:{rows.model_version(weights, call.user).pk}"
        body |= {"name": _model_name(call), "version": (call.only("data") or {}).get("id"), "params": params}
        body |= {"preset": call.params["preset"]} if call.params["preset"] else {}
        body |= {"gpus_per_node": call.params["gpus"]} if call.params["gpus"] is not None else {}
        body |= {"cpus": call.params["cpus"]} if call.params["cpus"] is not None else {}
        training = submit(call.user, body)
        return Begun(job=training.job, stored={"training": training.pk})

    def poll(self, row: StepRun) -> Done | None:
        job = completed(row)
        training = TrainingJob.objects.get(job=job)
        outputs: dict[str, Any] = {"figures": figures(training.metrics, row)}
        if made := model_of(job):
            outputs["model"] = reference("model", made)
        return Done(outputs)


def _model_name(call: Call) -> str:
    """What the training is called, and so the model that gets a version: the same in each run."""
    item = f"_{call.row.item}" if call.row.item >= 0 else ""
    return call.params["model"] or titles.derive_name(f"{call.run.pipeline.name}_{call.row.step}{item}", room=90)


def submit(user: User, body: Mapping[str, Any]) -> TrainingJob:
    """Queue the training that a body of the API says.

    Raises:
        DomainError: all that it is refused for.
    """
    data = body_of(TrainingIn, user, body, drafts.check_parts)
    return jobs.submit(user=user, request=request_of(user, data))


def model_of(job: Job) -> ModelVersion | None:
    """The model version that a job left."""
    made: ModelVersion | None = ModelVersion.objects.filter(job=job).select_related("model").order_by("-pk").first()
    return made


def figures(values: Mapping[str, Any], row: StepRun, **further: Any) -> dict[str, Any]:
    """Numbers by name as an output."""
    numbers = {name: float(value) for name, value in values.items() if isinstance(value, int | float)}
    return {"type": "figures", "values": numbers, "step": row.step, "label": row.step, **further}
