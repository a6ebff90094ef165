"""The form with which an approval is answered."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from workers.jobs.approval import MAX_REASON_LENGTH


class ApprovalForm(forms.Form):
    """A comment that the owner reads with the answer."""

    word = forms.CharField(label=_("Message to the owner"), max_length=MAX_REASON_LENGTH, required=False)
