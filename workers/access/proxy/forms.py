"""The form that publishes a port of a job."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from workers.access.proxy import published_ports
from workers.access.proxy.models import NAME


class PublishForm(forms.Form):
    """A port, and a word for it."""

    port = forms.IntegerField(
        label=_("Port"),
        min_value=published_ports.PORTS[0],
        max_value=published_ports.PORTS[-1],
    )
    name = forms.CharField(
        label=_("Name"),
        max_length=30,
        required=False,
        validators=[NAME],
    )
