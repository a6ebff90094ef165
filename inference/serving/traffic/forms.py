"""Forms of trials of another version."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inference.serving.forms import ServiceModelForm
from inference.serving.models import Service, ServiceTrial


class TrialForm(ServiceModelForm):
    """Which version is tried, how, and on what part of the requests."""

    mode = forms.ChoiceField(label=_("Mode"), choices=ServiceTrial.Mode.choices, initial=ServiceTrial.Mode.CANARY)
    percent = forms.IntegerField(
        label=_("Share of requests, in percent"),
        min_value=1,
        max_value=100,
        initial=10,
        help_text=_("Can be changed while it runs."),
    )

    def __init__(self, *args: Any, service: Service, **kwargs: Any) -> None:
        super().__init__(*args, service=service, **kwargs)
        versions: Any = self.fields["model_version"]
        versions.help_text = _("The new server starts next to the current one, and gets requests when it is ready.")
        versions.queryset = versions.queryset.exclude(pk=service.model_version_id)
        if service.model_version is not None:
            versions.queryset = versions.queryset.filter(task=service.model_version.task)


class TrialPartForm(forms.Form):
    """Another part of the requests."""

    percent = forms.IntegerField(label=_("Share of requests, in percent"), min_value=1, max_value=100)
