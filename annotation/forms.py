"""Forms of the annotation pages. They check shape; rules are in the services."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.forms.picking import PeopleField
from accounts.models import User
from accounts.services import finding
from annotation.models import AnnotationSet, ImageTask, LabelClass, ProjectMember, targets
from annotation.models.projects import drawn_as
from datasets import shapes
from datasets.formats.neutral import SHAPES
from datasets.forms.version_choice import DatasetVersionChoice
from datasets.models import DatasetVersion
from datasets.services.datasets import NAME_MAX

MAX_CLASS_LENGTH = 50
TAKE_OVER = _("Keep existing annotations")
TAKE_OVER_HELP = _(
    "Boxes and polygons can be edited here. Masks become outlines; a mask with holes keeps them until it is "
    "edited. Image-level classes are not imported."
)


class ProjectForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100)
    intro = forms.CharField(
        label=_("Description"),
        max_length=500,
        required=False,
        help_text=_("What is annotated, and why. Shown to annotators."),
    )


class BeginForm(ProjectForm):
    """A new project that begins with a dataset version; where that has no classes, they are named here."""

    field_order = ["name", "classes", "shape", "with_shapes", "intro"]
    classes = forms.CharField(
        label=_("Classes"),
        max_length=5_000,
        required=False,
        help_text=_("Classes to annotate, separated by commas, such as: cat, dog. More can be added later."),
    )
    shape = forms.ChoiceField(label=_("Shape"), choices=drawn_as, required=False)
    with_shapes = forms.BooleanField(label=TAKE_OVER, required=False, initial=True, help_text=TAKE_OVER_HELP)

    def __init__(self, *args: Any, source: DatasetVersion, **kwargs: Any) -> None:
        kwargs["initial"] = {"name": source.dataset.name, "with_shapes": True}
        super().__init__(*args, **kwargs)
        if source.task != SHAPES:
            del self.fields["with_shapes"]
        if source.classes:
            del self.fields["classes"], self.fields["shape"]

    def clean_classes(self) -> list[str]:
        """The names once each, in the order they were typed."""
        names = dict.fromkeys(
            " ".join(name.split()) for name in re.split(r"[,;\n，；、]", self.cleaned_data["classes"])
        )
        if long := [name for name in names if len(name) > MAX_CLASS_LENGTH]:
            raise forms.ValidationError(
                _("A class name must have 1 to %(max)d characters; “%(name)s…” is longer. Separate classes by commas."),
                params={"max": MAX_CLASS_LENGTH, "name": long[0][:20]},
            )
        return [name for name in names if name]

    def labels(self) -> list[dict[str, str]]:
        """The classes as `sets.create_with_project` takes them."""
        names = self.cleaned_data.get("classes", [])
        shape = self.cleaned_data.get("shape") or next(iter(shapes.choices()))[0]
        return [{"name": name, "shape": shape} for name in names]


class SetForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=100)
    intro = forms.CharField(label=_("Description"), max_length=500, required=False)
    visibility = forms.ChoiceField(
        label=_("Open to"),
        choices=AnnotationSet.Visibility.choices,
        initial=AnnotationSet.Visibility.PRIVATE,
        help_text=_("Who can annotate these images."),
    )


class NewSetForm(SetForm):
    source = DatasetVersionChoice(
        label=_("Source"),
        queryset=DatasetVersion.objects.none(),
        empty_label=_("Choose a dataset"),
        help_text=_("Any version you can use. Classes of annotated versions are kept with their ids."),
    )
    with_shapes = forms.BooleanField(label=TAKE_OVER, required=False, initial=True, help_text=TAKE_OVER_HELP)
    kind = forms.ChoiceField(label=_("Type"), choices=AnnotationSet.Kind.choices, initial=AnnotationSet.Kind.IMAGE)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions = DatasetVersion.objects.usable_by(user).filter(state=DatasetVersion.State.READY)
        self.fields["source"].queryset = versions.select_related("dataset")  # type: ignore[attr-defined]  # a choice among rows, declared above


class LabelForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=50)
    supercategory = forms.CharField(
        label=_("Parent type"),
        max_length=50,
        required=False,
        widget=forms.TextInput(attrs={"list": "parents"}),
        help_text=_("Groups classes, such as animal: cat, dog. Optional."),
    )
    shape = forms.ChoiceField(label=_("Shape"), choices=drawn_as)
    colour = forms.CharField(label=_("Color"), required=False, widget=forms.TextInput(attrs={"type": "color"}))


class NewLabelForm(LabelForm):
    """A new class, with the palette's next colour."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["colour"]

    def has_changed(self) -> bool:
        """Return whether the row names a class; its drawing style alone does not count."""
        return not {"name", "supercategory"}.isdisjoint(self.changed_data)


LabelRows = forms.formset_factory(NewLabelForm, extra=2, max_num=100)


class TilesForm(forms.Form):
    """The filter bar of a dataset's images; unknown values are no filter."""

    state = forms.ChoiceField(required=False, choices=[("", _("All")), *ImageTask.State.choices])
    objects = forms.ChoiceField(
        required=False,
        choices=[("", _("Labeled or not")), ("with", _("With objects")), ("without", _("Without objects"))],
    )

    def __init__(self, *args: Any, labels: Iterable[LabelClass], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        classes = [(str(label.pk), label.name) for label in labels]
        self.fields["label"] = forms.ChoiceField(required=False, choices=[("", _("All classes")), *classes])

    def wanted(self) -> dict[str, Any]:
        """Arguments of `tiles.page`."""
        self.is_valid()
        state, label, drawn = (self.cleaned_data.get(name) or "" for name in ("state", "label", "objects"))
        return {"state": state, "label": int(label) if label else None, "drawn": drawn == "with" if drawn else None}


class MemberForm(forms.Form):
    """People by name, and the role they get."""

    username = PeopleField(label=_("Users"))
    role = forms.ChoiceField(
        label=_("Role"), choices=ProjectMember.Role.choices, initial=ProjectMember.Role.ANNOTATOR, required=False
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"].among = finding.by_exact_name()  # type: ignore[attr-defined]  # a field of people, declared above

    def clean_role(self) -> str:
        return self.cleaned_data["role"] or ProjectMember.Role.ANNOTATOR

    def people(self) -> dict[str, Any]:
        """Arguments of `projects.add_members`."""
        return {
            "usernames": [person.username for person in self.cleaned_data["username"]],
            "role": self.cleaned_data["role"],
        }


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=ProjectMember.Role.choices)


class ConvertForm(forms.Form):
    target = forms.ChoiceField(label=_("Format"), choices=targets)
    make_version = forms.BooleanField(
        label=_("Also create a dataset version for training"), required=False, initial=True
    )
    new_dataset = forms.CharField(
        label=_("New dataset"),
        max_length=NAME_MAX,
        required=False,
        help_text=_("Leave empty to add a version to the dataset of the images."),
        widget=forms.TextInput(attrs={"class": "input"}),
    )
