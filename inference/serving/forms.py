"""Forms of services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.titles import TITLE
from inference.registry.fields import ModelVersionChoice
from inference.registry.formats.folder import WEIGHTS
from inference.registry.models import ModelVersion, Stage, Visibility
from inference.serving import endpoints
from inference.serving.limits import LIMITS
from inference.serving.models import Service
from workers.jobs.forms.resource_request import ResourceForm


class ServiceForm(ResourceForm):
    """A service to make and start."""

    device_kinds = ("gpu", "cpu")
    name = forms.CharField(
        label=_("Name"),
        max_length=50,
        required=False,
        validators=[TITLE],
        help_text=_("Leave empty to use the model name."),
    )
    model_version = ModelVersionChoice(
        label=_("Model"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a model")
    )
    description = forms.CharField(label=_("Description"), max_length=200, required=False)
    visibility = forms.ChoiceField(
        label=_("Access"),
        choices=[(Visibility.PRIVATE, _("Only me")), (Visibility.PUBLIC, _("All users"))],
        initial=Visibility.PRIVATE,
    )
    gpus_per_node = forms.IntegerField(
        label=_("GPUs"), min_value=0, max_value=1, initial=0, help_text=_("0 uses the CPU.")
    )
    cpus = forms.FloatField(label=_("CPU cores"), min_value=0.1, max_value=256, initial=endpoints.DEFAULT_CPUS)
    share_process = forms.BooleanField(
        label=_("Share a process with my other endpoints"),
        required=False,
        help_text=_(
            "Uses far less memory for small models (multi-model serving). Runs on the CPU, shared by endpoints "
            "with the same resource request."
        ),
    )
    max_batch = forms.IntegerField(
        label=_("Maximum batch size"),
        min_value=1,
        max_value=256,
        initial=8,
        help_text=_("Images of different requests that are processed in one run of the model."),
    )
    max_delay_ms = forms.FloatField(
        label=_("Maximum batch delay"),
        min_value=0,
        max_value=1000,
        initial=2,
        help_text=_("A single request never waits."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        del self.fields["max_runtime_min"]  # a service runs until it is stopped
        own = ModelVersion.objects.usable_by(user).in_use().exclude(task=WEIGHTS).select_related("model")
        self.fields["model_version"].queryset = own  # type: ignore[attr-defined]  # a choice among rows, declared above

    @property
    def advanced(self) -> list[forms.BoundField]:
        """Fields of the folded part."""
        return [self["max_batch"], self["max_delay_ms"]]

    def submission(self) -> dict[str, Any]:
        """Arguments of `endpoints.create`."""
        names = ("name", "model_version", "description", "visibility", "max_batch", "max_delay_ms", "share_process")
        fields = {name: self.cleaned_data[name] for name in names} | self.resources()
        del fields["max_runtime"]
        return fields


class ServiceModelForm(forms.Form):
    """Which version a service is to answer with."""

    model_version = ModelVersionChoice(
        label=_("Model"),
        queryset=ModelVersion.objects.none(),
        empty_label=_("Choose a model"),
        help_text=_("The new model starts next to the current one and takes over when it is ready."),
    )

    def __init__(self, *args: Any, service: Service, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        usable = ModelVersion.objects.usable_by(service.owner).exclude(task=WEIGHTS).select_related("model")
        own = usable.filter(~Q(stage=Stage.ARCHIVED) | Q(pk=service.model_version_id))  # back to what answers, always
        self.fields["model_version"].queryset = own  # type: ignore[attr-defined]  # a choice among rows, declared above


def _limit(name: str, label: Any, help_text: Any) -> forms.IntegerField:
    limit = LIMITS[name]
    return forms.IntegerField(
        label=label, min_value=limit.minimum, max_value=limit.maximum, required=False, help_text=help_text
    )


class ServiceEditForm(forms.Form):
    """The settings of a service that can change while it runs; limits except `per_minute` apply from its next start."""

    description = forms.CharField(label=_("Description"), max_length=200, required=False)
    visibility = forms.ChoiceField(label=_("Access"), choices=ServiceForm.base_fields["visibility"].choices)  # type: ignore[attr-defined]  # a field of choices, declared above
    share_process = forms.BooleanField(label=_("Share a process with my other endpoints"), required=False)
    per_minute = _limit(
        "per_minute",
        _("Requests per minute and client"),
        _("0: unlimited. An API key can have its own limit."),
    )
    max_body_mib = _limit("max_body_mib", _("Maximum request size"), "")
    request_batch = _limit("request_batch", _("Images per request"), "")
    max_answer_mib = _limit("max_answer_mib", _("Maximum response size"), "")
    keep_percent = _limit("keep_percent", _("Randomly sampled images"), _("0: none. Inform your callers."))
    keep_below = _limit(
        "keep_below",
        _("Images stored if the confidence is below this value"),
        _("0: none."),
    )
    keep_differing = _limit(
        "keep_differing",
        _("Images stored if two models disagree"),
        _("For requests copied to another model. 100: any difference. 0: none."),
    )
    keep_days = _limit(
        "keep_days", _("Days until stored images are deleted"), _("If they were not made into a dataset.")
    )
    min_replicas = _limit(
        "min_replicas",
        _("Minimum replicas"),
        _("0: none while idle. The next request starts one."),
    )
    max_replicas = _limit(
        "max_replicas", _("Maximum replicas"), _("Each uses the resources requested by the endpoint.")
    )
    queue_ms = _limit(
        "queue_ms",
        _("Target wait time in the queue"),
        _("Another replica is started when the p95 wait time is longer."),
    )
    idle_minutes = _limit("idle_minutes", _("Idle minutes"), _("Until it scales to zero, if the minimum is 0."))
    deadline_s = _limit("deadline_s", _("Maximum response time"), _("A client can request less."))

    def change(self) -> dict[str, Any]:
        """Return the arguments of `endpoints.edit`; limits that were not sent are unchanged."""
        values = dict(self.cleaned_data)
        limits = {name: values.pop(name) for name in LIMITS}
        return {"limits": {name: value for name, value in limits.items() if value is not None}, **values}
