"""Form of a new key."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.titles import TITLE
from inference.serving.keys import keys


class KeyForm(forms.Form):
    """Whom the key is for, how often they may ask, and how long it is good for."""

    name = forms.CharField(
        label=_("Name"),
        max_length=keys.MAX_NAME,
        validators=[TITLE],
        help_text=_("The user of the key. Shown in the usage statistics."),
    )
    per_minute = forms.IntegerField(
        label=_("Requests per minute"),
        min_value=1,
        max_value=keys.MAX_PER_MINUTE,
        required=False,
        help_text=_("Leave empty to use the value of the endpoint."),
    )
    days = forms.IntegerField(
        label=_("Days"),
        min_value=1,
        max_value=keys.MAX_DURATION.days,
        required=False,
        help_text=_("Leave empty for a key without expiration."),
    )

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `keys.issue`."""
        days = self.cleaned_data["days"]
        return {
            "name": self.cleaned_data["name"],
            "per_minute": self.cleaned_data["per_minute"],
            "expires_in": timedelta(days=days) if days else None,
        }
