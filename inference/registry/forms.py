"""Form that edits a model."""

from __future__ import annotations

from django import forms

from inference.registry.models import Model


class ModelEditForm(forms.ModelForm):
    """Description, visibility and package settings of a model."""

    class Meta:
        model = Model
        fields = ["description", "visibility", "packages_pictures"]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}
