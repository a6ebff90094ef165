"""Forms of named secrets: a value goes in and never comes out again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.services import named_secrets


class ValueWidget(forms.Textarea):
    """A place for a value, which a form that was refused does not show again."""

    def format_value(self, value: Any) -> str:
        return ""


class ValueField(forms.CharField):
    """A value just as it was typed."""

    widget = ValueWidget(
        attrs={"rows": 3, "spellcheck": "false", "class": "mono", "autocomplete": "off", "autocapitalize": "off"}
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            label=pgettext_lazy("secret", "Value"), strip=False, max_length=2 * named_secrets.MAX_BYTES, **kwargs
        )


NOTE_HELP = _("Purpose and source.")


class SecretForm(forms.Form):
    """A new secret."""

    name = forms.CharField(
        label=_("Name"),
        max_length=64,
        help_text=_(
            "Capital letters, digits and _, such as HF_TOKEN. Jobs get it as an environment variable with this name."
        ),
        widget=forms.TextInput(attrs={"class": "mono", "autocomplete": "off", "spellcheck": "false"}),
    )
    value = ValueField(help_text=_("Stored encrypted. The value is never shown again, not even to you."))
    note = forms.CharField(label=_("Note"), max_length=200, required=False, help_text=NOTE_HELP)


class SecretChangeForm(forms.Form):
    """A new value of a secret, or a new note."""

    value = ValueField(required=False, help_text=_("Leave empty to keep the value. The stored value is never shown."))
    note = forms.CharField(label=_("Note"), max_length=200, required=False, help_text=NOTE_HELP)
