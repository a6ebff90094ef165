"""Forms of the annotation pages. They check shape; rules are in the services."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from annotation.models import AnnotationSet, Export, ProjectMember
from datasets import shapes
from datasets.models import DatasetVersion


class ProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100)
    intro = forms.CharField(
        label=_("Introduction"),
        max_length=500,
        required=False,
        help_text=_("What is annotated, and why; annotators read it."),
    )


class SetForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100)
    intro = forms.CharField(label=_("Introduction"), max_length=500, required=False)
    visibility = forms.ChoiceField(
        label=_("Open to"),
        choices=AnnotationSet.Visibility.choices,
        initial=AnnotationSet.Visibility.PRIVATE,
        help_text=_("Who may draw on these images."),
    )


class NewSetForm(SetForm):
    source = forms.ModelChoiceField(
        label=_("Source"),
        queryset=DatasetVersion.objects.none(),
        empty_label=_("Choose a dataset"),
        help_text=_("Datasets that are not annotated yet."),
    )
    kind = forms.ChoiceField(label=_("Type"), choices=AnnotationSet.Kind.choices, initial=AnnotationSet.Kind.IMAGE)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions = DatasetVersion.objects.usable_by(user).filter(annotated=False, state=DatasetVersion.State.READY)
        self.fields["source"].queryset = versions.select_related("dataset")  # type: ignore[attr-defined]  # a choice among rows, declared above


class LabelForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=50)
    supercategory = forms.CharField(
        label=_("Parent type"),
        max_length=50,
        required=False,
        widget=forms.TextInput(attrs={"list": "parents"}),
        help_text=_("Groups classes, as in animal: cat, dog. Empty: none."),
    )
    shape = forms.ChoiceField(label=_("Drawn as"), choices=shapes.choices, initial=shapes.DEFAULT.name)
    colour = forms.CharField(label=_("Colour"), required=False, widget=forms.TextInput(attrs={"type": "color"}))


class NewLabelForm(LabelForm):
    """A new class, with the palette's next colour."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["colour"]


LabelRows = forms.formset_factory(NewLabelForm, extra=2, max_num=100)


class MemberForm(forms.Form):
    username = forms.CharField(label=_("Username"), max_length=50)
    role = forms.ChoiceField(
        label=_("Role"), choices=ProjectMember.Role.choices, initial=ProjectMember.Role.ANNOTATOR, required=False
    )

    def clean_role(self) -> str:
        return self.cleaned_data["role"] or ProjectMember.Role.ANNOTATOR


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=ProjectMember.Role.choices)


class ConvertForm(forms.Form):
    target = forms.ChoiceField(label=_("Format"), choices=Export.Target.choices)
    make_version = forms.BooleanField(
        label=_("Also make it a dataset version that trainings can use"), required=False, initial=True
    )
