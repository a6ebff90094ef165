"""Steps that bring data: a dataset version, and lists of values to run over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import Invalid
from inference.pipelines.kinds import Begun, Call, Done, Param, Port, StepKind
from inference.pipelines.models import reference
from inference.pipelines.steps import rows
from inference.registry import references

MAX_ITEMS = 1000


class DatasetStep(StepKind):
    """A version of a dataset, chosen when the run comes to it."""

    name = "dataset"
    label = gettext_lazy("Dataset version")
    description = gettext_lazy("Provides a dataset version: a fixed one, or the newest when the step runs.")
    group = "data"
    icon = "datasets"
    acts = True  # the newest one may be another by now
    needs = Action.DATASETS_VIEW
    outputs = (Port("data", gettext_lazy("Data"), "dataset"),)
    params = (
        Param(
            "dataset",
            gettext_lazy("Dataset"),
            required=True,
            help=gettext_lazy("The name or number; for an object of another user OWNER/NAME."),
        ),
        Param("version", gettext_lazy("Version"), default="latest", help=gettext_lazy("latest, or a number.")),
    )

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("dataset"):
            rows.version_of(rows.dataset_named(params["dataset"], user), params.get("version") or "latest")

    def start(self, call: Call) -> Begun:
        version = rows.version_of(rows.dataset_named(call.params["dataset"], call.user), call.params["version"])
        return Begun(done=Done({"data": reference("dataset", version)}))


class ModelStep(StepKind):
    """A version of a model, chosen when the run comes to it."""

    name = "model"
    label = gettext_lazy("Model version")
    description = gettext_lazy("Provides a model version by its alias or number, resolved when the step runs.")
    group = "data"
    icon = "models"
    acts = True  # an alias may name another one by now
    needs = Action.MODELS_VIEW
    outputs = (Port("model", gettext_lazy("Model"), "model"),)
    params = (
        Param("model", gettext_lazy("Model"), required=True, help=gettext_lazy(
            "Such as cells@champion, cells:3, or cells for the newest; OWNER/cells for a model of another user.")),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        if params.get("model"):
            references.find(user, params["model"], to_use=True, field="model")

    def start(self, call: Call) -> Begun:
        version = references.find(call.user, call.params["model"], to_use=True, field="model")
        return Begun(done=Done({"model": reference("model", version)}))


class ItemsStep(StepKind):
    """A list of values that other steps run over."""

    name = "items"
    label = gettext_lazy("List of values")
    description = gettext_lazy("A list to run other steps on, once per value: they use it as ${item}.")
    group = "data"
    icon = "list"
    acts = True  # there is nothing to save
    outputs = (Port("items", gettext_lazy("Items"), "list"),)
    params = (
        Param(
            "values", gettext_lazy("Values"), form="json", required=True,
            help=gettext_lazy('JSON, such as [0.1, 0.01], or [{"lr": 0.1, "epochs": 5}].'),
        ),
    )  # fmt: skip

    def check(self, params: Mapping[str, Any], user: User) -> None:
        values = params.get("values")
        if values is None:
            return
        if not isinstance(values, list) or not 1 <= len(values) <= MAX_ITEMS:
            raise Invalid(_("Enter a list of 1 to %(most)s values.") % {"most": MAX_ITEMS}, field="values")

    def start(self, call: Call) -> Begun:
        self.check(call.params, call.user)
        return Begun(done=Done({"items": list(call.params["values"])}))
