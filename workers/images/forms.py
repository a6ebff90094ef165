"""Forms of images."""

from __future__ import annotations

from django import forms
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.titles import TITLE
from workers.images.models import Image, Visibility
from workers.images.store import compatibility, engines
from workers.jobs.forms.resource_request import ResourceForm
from workers.jobs.resource_request import Resources


class NameFields(forms.Form):
    """What an image is called and who sees it."""

    name = forms.CharField(label=_("Name"), max_length=100, validators=[TITLE])
    tag = forms.CharField(
        label=_("Tag"), max_length=50, required=False, validators=[TITLE], help_text=_("A version, such as 2 or june.")
    )
    description = forms.CharField(
        label=_("Description"), max_length=500, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    visibility = forms.ChoiceField(label=_("Visible to"), choices=Visibility, initial=Visibility.PRIVATE)


class BuildForm(NameFields):
    """An engine made of a text of requirements."""

    requirements = forms.CharField(
        label=_("Packages"),
        max_length=engines.MAX_LENGTH,
        required=False,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false", "class": "mono", "autocapitalize": "off"}),
        help_text=_("One package per line, as in requirements.txt: torchmetrics==1.4"),
    )
    with_platform = forms.BooleanField(
        label=_("Include the packages of the platform, such as torch"), required=False, initial=True
    )
    field_order = ["name", "tag", "requirements", "with_platform", "description", "visibility"]


class SaveForm(NameFields):
    """An image made of what was installed in a job."""


class EditForm(forms.ModelForm):
    class Meta:
        model = Image
        fields = ["description", "visibility"]
        widgets = {"description": forms.Textarea(attrs={"rows": 2})}


def resources_of(form: ResourceForm) -> Resources:
    """What a form with a choice of an image asks of the machines, half filled or not."""
    image = form.cleaned_data.get("image")
    return {**form.resources(), "needs": compatibility.needs_of(image).as_row()}


def fit_words(form: ResourceForm) -> str:
    """On which machines the chosen image runs; "" where none is chosen."""
    image = form.cleaned_data.get("image")
    return compatibility.sentence(image, cards=bool(form.cleaned_data.get("gpus_per_node"))) if image else ""
