"""Forms of pipelines: about one, and what a run is begun with."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

from django import forms
from django.utils.timezone import get_default_timezone_name
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from datasets.models import Dataset
from inference.pipelines import runs, templates
from inference.pipelines.graph import Spec
from inference.pipelines.models import Pipeline, PipelineTrigger
from inference.serving.models import Service


class PipelineForm(forms.ModelForm):
    """Name, description and who sees it."""

    class Meta:
        model = Pipeline
        fields = ["name", "description", "visibility"]


class NewPipelineForm(PipelineForm):
    """With the template; all else has a default."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["template"] = forms.ChoiceField(required=False, choices=templates.choices())
        for field in self.fields.values():
            field.required = False
        self.fields["name"].help_text = gettext_lazy("Leave empty to use the name of the template.")

    def to_params(self, taken: Container[str]) -> dict[str, Any]:
        """Return the arguments of `writing.create`; empty fields are filled from the template."""
        values = self.cleaned_data
        template = values["template"]
        return {
            "name": values["name"] or templates.name_for(template, taken),
            "description": values["description"] or templates.description_of(template),
            "visibility": values["visibility"] or Pipeline.Visibility.PRIVATE,
            "spec": templates.spec_of(template),
        }


class RunForm(forms.Form):
    """A field for each parameter, and how the run is carried out."""

    limit = forms.IntegerField(
        label=gettext_lazy("Parallel trials"), min_value=1, max_value=runs.MAX_AT_ONCE, initial=runs.LIMIT,
        help_text=gettext_lazy("Steps and items that can run in parallel."),
    )  # fmt: skip
    use_cache = forms.BooleanField(
        label=gettext_lazy("Reuse earlier results"), required=False, initial=True,
        help_text=gettext_lazy("Steps with unchanged parameters and inputs are not run again."),
    )  # fmt: skip
    fail_fast = forms.BooleanField(label=gettext_lazy("Stop at the first failure"), required=False)

    def __init__(self, *args: Any, spec: Spec, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {
            f"param_{name}": forms.CharField(
                label=name.replace("_", " ").capitalize(),
                required=False,
                initial=_shown(parameter.default),
                help_text=parameter.note,
                max_length=10_000,
            )
            for name, parameter in sorted(spec.parameters.items())
        }
        self.parameter_names = sorted(spec.parameters)
        self.texts = {name for name, parameter in spec.parameters.items() if isinstance(parameter.default, str)}
        self.fields = own | self.fields

    def parameters(self) -> dict[str, Any]:
        """The values of the run."""
        return {name: self._read(name, self.cleaned_data[f"param_{name}"]) for name in self.parameter_names}

    def _read(self, name: str, text: str) -> Any:
        if name in self.texts:
            return text
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


class TriggerForm(forms.Form):
    """What begins a run by itself."""

    kind = forms.ChoiceField(label=gettext_lazy("Trigger"), choices=PipelineTrigger.Kind.choices)
    schedule = forms.CharField(
        label=gettext_lazy("Schedule"), required=False, max_length=200, initial="0 3 * * 0",
        help_text=gettext_lazy("Minute, hour, day, month, weekday: 0 3 * * 0 is Sunday at three."),
    )  # fmt: skip
    zone = forms.CharField(
        label=gettext_lazy("Time zone"), required=False, max_length=64,
        help_text=gettext_lazy("A time zone such as Europe/Berlin. At clock changes, a time is due once."),
    )  # fmt: skip
    missed = forms.ChoiceField(
        label=gettext_lazy("Missed times"), choices=PipelineTrigger.Missed.choices, required=False
    )
    dataset = forms.ModelChoiceField(Dataset.objects.none(), label=gettext_lazy("Dataset"), required=False)
    service = forms.ModelChoiceField(Service.objects.none(), label=gettext_lazy("Endpoint"), required=False)
    rule = forms.CharField(
        label=gettext_lazy("Alert rule"),
        required=False,
        max_length=30,
        help_text=gettext_lazy("Leave empty for any alert."),
    )
    busy = forms.ChoiceField(
        label=gettext_lazy("While an earlier run is active"), choices=PipelineTrigger.Busy.choices, required=False
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["zone"].initial = user.time_zone or get_default_timezone_name()
        self.fields["dataset"] = forms.ModelChoiceField(
            Dataset.objects.usable_by(user).order_by("name"), label=gettext_lazy("Dataset"), required=False
        )
        self.fields["service"] = forms.ModelChoiceField(
            Service.objects.visible_to(user).filter(owner=user).order_by("name"),
            label=gettext_lazy("Endpoint"),
            required=False,
        )
        kinds = [
            choice for choice in PipelineTrigger.Kind.choices if choice[0] != "alarm" or user.can(Action.CLUSTER_MANAGE)
        ]
        self.fields["kind"] = forms.ChoiceField(label=gettext_lazy("Trigger"), choices=kinds)

    def to_params(self) -> dict[str, Any]:
        """Return the fields that were filled in; empty ones use their defaults."""
        return {name: value for name, value in self.cleaned_data.items() if value not in ("", None)}
