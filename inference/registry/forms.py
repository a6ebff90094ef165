"""Form of a model."""

from __future__ import annotations

from django import forms

from inference.registry.models import Model

TEXTAREA = forms.Textarea(attrs={"rows": 3})


class ModelEditForm(forms.ModelForm):
    class Meta:
        model = Model
        fields = ["description", "visibility", "packages_pictures"]
        widgets = {"description": TEXTAREA}
