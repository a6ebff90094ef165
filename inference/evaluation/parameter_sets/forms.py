"""The form of an evaluation parameter set."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.titles import TITLE
from inference.evaluation import saved_parameters
from inference.evaluation.custom_scripts import forms as script_forms
from inference.evaluation.forms import EvaluationForm
from inference.evaluation.models import EvaluationSet
from workers.resources.nodes import device_rules


class EvaluationSetForm(EvaluationForm):
    """The settings of an evaluation without the model and the cluster."""

    description = forms.CharField(label=_("Description"), max_length=200, required=False)
    visibility = forms.ChoiceField(label=_("Visible to"), choices=EvaluationSet.Visibility.choices)

    task: str  # of the models that the set is for
    LEFT_OUT = (
        "model_version", "cluster", "share", "memory_gib", "max_disk_gib", "priority", "urgent", "max_runtime_min",
        "preemptible", "parameter_set",
    )  # fmt: skip

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        for name in self.LEFT_OUT:
            self.fields.pop(name, None)
        self.fields["name"] = forms.CharField(label=_("Name"), max_length=50, validators=[TITLE])
        self.fields["version"].required = False
        self.fields["version"].empty_label = _("None: each user of the set chooses one")  # type: ignore[attr-defined]  # a choice among rows

    def content(self) -> dict[str, Any]:
        """Arguments of `sets.save`."""
        data = self.cleaned_data
        kind, model = device_rules.parsed(data["device"]) if data.get("device") else ("gpu", "")
        return {
            **{name: data[name] for name in ("name", "description", "visibility", "version", "split", "cpus")},
            "gpus_per_node": data["gpus_per_node"],
            "device_kind": kind,
            "device_model": model,
            "params": {name: data[name] for name in self.ADVANCED},
            **(self.script() or NO_SCRIPT),
        }


def initial_of(row: EvaluationSet, user: User) -> dict[str, Any]:
    """What this person's form begins with: of a set, or (see `begun`) of an evaluation about to become one."""
    return initial_values(saved_parameters.visible_values(user, row))


NO_SCRIPT = {"code": None, "start_file": "", "arguments": "", "output_path": "", "image": None}
_PLAIN = ("version", "split", "gpus_per_node", "cpus")


def initial_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return the initial values of an evaluation's form from a parameter set or an evaluation."""
    device = device_rules.value_of(values["device_kind"], values["device_model"], values["gpus_per_node"])
    script = script_forms.initial_values(values)
    return {name: values[name] for name in _PLAIN} | (script or dict(values["params"])) | {"device": device}
