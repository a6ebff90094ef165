"""A pipeline inside another one, and what feeds it from outside. See `inlining` for what becomes of them in a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import Invalid
from inference.pipelines import inlining
from inference.pipelines.advance import STEP_ITEM, State
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepFailed, StepKind
from inference.pipelines.models import reference
from inference.pipelines.steps import rows
from inference.registry import references

SHOWN = 10  # names in a sentence


class PipelineStep(StepKind):
    """An inner pipeline. In a run it is the end of its steps: it fails where one of them failed."""

    name = inlining.KIND
    label = gettext_lazy("Pipeline")
    description = gettext_lazy("Runs another pipeline as a part of this one.")
    group = "other"
    icon = "network"
    acts = True  # the inner steps have keys of their own
    inputs = (
        Port("data", gettext_lazy("Data"), "dataset", optional=True),
        Port("model", gettext_lazy("Model"), "model", optional=True),
    )
    outputs = (
        Port("data", gettext_lazy("Data"), "dataset"),
        Port("model", gettext_lazy("Model"), "model"),
        Port("figures", gettext_lazy("Metrics"), "figures"),
    )
    params = (
        Param("pipeline", gettext_lazy("Pipeline"), required=True, help=gettext_lazy("The name or number.")),
        Param("version", gettext_lazy("Version"), default="latest", help=gettext_lazy("latest, or a number.")),
        Param("parameters", gettext_lazy("Parameters"), form="json", default=None,
              help=gettext_lazy("JSON with values of its parameters; others have their defaults.")),
        Param("result", gettext_lazy("Result"), default="",
              help=gettext_lazy("The nested step whose outputs are returned. Default: the only final step.")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        values = params.get("parameters") or {}
        if not isinstance(values, Mapping):
            raise Invalid(_("Enter an object: names and values."), field="parameters")

    def start(self, call: Call) -> Begun:
        """Report the outcome of the inner steps, which are all over."""
        inside = call.run.step_runs.filter(step__startswith=f"{call.row.step}/", item=STEP_ITEM).order_by("attempt")
        states = dict(inside.values_list("step", "state"))
        if failed := [step for step, state in states.items() if state == State.FAILED]:
            message = _("These nested steps failed: %(steps)s.")
            raise StepFailed(message % {"steps": ", ".join(sorted(failed)[:SHOWN])})
        return Begun(done=Done())


class InputStep(StepKind):
    """Inputs from the outer pipeline; a pipeline that runs alone uses its own defaults."""

    name = inlining.INPUT
    label = gettext_lazy("External inputs")
    description = gettext_lazy("Dataset and model that the pipeline receives as a step of another one.")
    group = "data"
    icon = "bring"
    acts = True  # the newest one may be another by now
    needs = Action.DATASETS_VIEW
    outputs = (Port("data", gettext_lazy("Data"), "dataset"), Port("model", gettext_lazy("Model"), "model"))
    params = (
        Param("dataset", gettext_lazy("Dataset"), default="",
              help=gettext_lazy("Name or number of the data for standalone runs of this pipeline.")),
        Param("version", gettext_lazy("Version"), default="latest", help=gettext_lazy("latest, or a number.")),
        Param("model", gettext_lazy("Model"), default="",
              help=gettext_lazy("The model for standalone runs, such as cells@champion or cells:2.")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("dataset"):
            rows.version_of(rows.dataset_named(params["dataset"], user), params.get("version") or "latest")
        if params.get("model"):
            references.find(user, params["model"], to_use=True, field="model")
        if params.get("dataset") == "" and params.get("model") == "":
            message = _("This input comes from an outer pipeline. Name a dataset or a model for standalone runs.")
            raise Invalid(message, field="dataset")

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        outputs = {}
        if call.params["dataset"]:
            dataset = rows.dataset_named(call.params["dataset"], call.user)
            outputs["data"] = reference("dataset", rows.version_of(dataset, call.params["version"]))
        if call.params["model"]:
            version = references.find(call.user, call.params["model"], to_use=True, field="model")
            outputs["model"] = reference("model", version)
        return Begun(done=Done(outputs))
