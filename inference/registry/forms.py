"""Form of a model."""

from __future__ import annotations

from django import forms

from inference.registry.models import Model

LONG = forms.Textarea(attrs={"rows": 3})


class ModelEditForm(forms.ModelForm):
    class Meta:
        model = Model
        fields = ["description", "visibility", "packages_pictures"]
        widgets = {"description": LONG}
