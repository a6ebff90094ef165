"""Forms of groups of devices."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib.titles import TITLE
from inference.delivery.edge import fleet, sampling
from inference.kit.task_kinds import TASKS
from inference.registry.fields import ModelVersionChoice
from inference.registry.models import ModelVersion


class EdgeGroupForm(forms.Form):
    """A new group."""

    name = forms.CharField(label=_("Name"), max_length=100, validators=[TITLE])
    days_offline = forms.IntegerField(
        label=_("Maximum days offline"),
        min_value=1,
        max_value=365,
        initial=7,
        help_text=_("How long a device trusts its last instruction. The device never stops its current model."),
    )


class EdgeDeviceForm(forms.Form):
    """A new device."""

    name = forms.CharField(label=_("Device name"), max_length=100, validators=[TITLE])


class EdgeSamplingForm(forms.Form):
    """Which pictures devices keep for annotation."""

    keep_percent = forms.IntegerField(
        label=_("Random sample"),
        min_value=0,
        max_value=100,
        help_text=_("Share of all processed images. 0: none."),
    )
    keep_below = forms.IntegerField(
        label=_("Store images below confidence"),
        min_value=0,
        max_value=100,
        help_text=_("0: none."),
    )
    keep_days = forms.IntegerField(
        label=_("Retention (days)"),
        min_value=1,
        max_value=sampling.MAX_DAYS,
        help_text=_("If they were not made into a dataset."),
    )


class EdgeReleaseForm(forms.Form):
    """What a share of the devices gets."""

    version = ModelVersionChoice(
        label=_("Model"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a model")
    )
    share = forms.TypedChoiceField(
        label=_("Rollout"), coerce=int, choices=[(share, f"{share} %") for share in fleet.SHARES], initial=10
    )

    soak_minutes = forms.IntegerField(
        label=_("Advance after (min)"),
        min_value=0,
        max_value=fleet.MAX_SOAK,
        required=False,
        help_text=_("Advances while nine of ten reached devices run without errors. Leave empty to advance manually."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = ModelVersion.objects.usable_by(user).in_use().filter(task__in=TASKS).select_related("model")
        self.fields["version"].queryset = own  # type: ignore[attr-defined]  # a choice among rows, declared above
