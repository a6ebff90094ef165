"""Forms that give a waiting job another priority."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from workers.core.models import Job


class PriorityForm(forms.Form):
    """Another priority for a waiting job."""

    priority = forms.IntegerField(label=_("Priority"), min_value=0, max_value=Job.URGENT)
