"""Forms with which more run time is requested and answered."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class MoreTimeForm(forms.Form):
    """How much longer a job should run, and why."""

    hours = forms.FloatField(label=_("Additional hours"), min_value=0.01, max_value=365 * 24)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=300,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Shown to the deciding administrators."),
    )


class AnswerForm(forms.Form):
    """The answer to a request for more time."""

    hours = forms.FloatField(label=_("Additional hours"), min_value=0.01, max_value=365 * 24, required=False)
    word = forms.CharField(label=_("Message to the owner"), max_length=300, required=False)
