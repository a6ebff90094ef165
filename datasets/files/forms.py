"""Forms of the files page."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _


class NameForm(forms.Form):
    """The name of a new folder."""

    called = {"path": "name"}
    name = forms.CharField(label=_("Name"), max_length=1000, strip=False, help_text=_("“a/b” creates both."))


class MoveForm(forms.Form):
    """Another name, another folder, or both."""

    called = {"path": "name", "to": "name"}
    name = forms.CharField(label=_("Name"), max_length=1000, strip=False)
    folder = forms.CharField(
        label=_("Folder"),
        max_length=16_000,
        required=False,
        strip=False,
        help_text=_("Path in your home folder; leave empty for the home folder itself."),
    )
