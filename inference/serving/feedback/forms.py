"""The form of a dataset made of pictures that came back."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.titles import TITLE


class AnnotateForm(forms.Form):
    """Its name."""

    name = forms.CharField(label=_("Dataset name"), max_length=25, validators=[TITLE])
