"""Forms of composed versions: one for each kind."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts.models import User
from aiplatform.lib.titles import TITLE
from inference.kit.model_io.spec import CHAIN, ENSEMBLE, FUSION, MEAN, SUPPRESSION
from inference.kit.models.graph_json import FIRST_TASKS, MAX_PARTS, METHODS, MIN_PARTS, SECOND_TASKS
from inference.registry.models import Model, ModelVersion, Visibility
from inference.registry.querysets import ModelVersionQuerySet

METHOD_LABELS = {
    MEAN: _("Mean of the probabilities"),
    FUSION: _("Weighted boxes fusion"),
    SUPPRESSION: _("Non-maximum suppression of all boxes"),
}


class VersionChoice(forms.ModelChoiceField):
    """A version, with what it is for and how many classes it knows."""

    def label_from_instance(self, version: ModelVersion) -> str:
        count = len(version.classes)
        classes = ngettext("%(count)s class", "%(count)s classes", count) % {"count": count}
        return f"{version} · {version.get_task_display()} · {classes}"


def list_parts(user: User, tasks: tuple[str, ...]) -> ModelVersionQuerySet:
    """Return the versions of these tasks that the user may use as a part."""
    usable: ModelVersionQuerySet = ModelVersion.objects.usable_by(user).in_use().filter(task__in=tasks)
    rows = usable.exclude(source=ModelVersion.Source.COMPOSED).select_related("model")
    return rows.order_by("task", "-pk")


class ComposeForm(forms.Form):
    """What every composed version has."""

    kind: ClassVar[str] = ""

    name = forms.CharField(
        label=_("Name"),
        max_length=100,
        required=False,
        validators=[TITLE],
        help_text=_("Leave empty to derive it from the parts."),
    )
    model = forms.ModelChoiceField(
        label=_("As a version of"),
        queryset=Model.objects.none(),
        required=False,
        empty_label=_("A new model"),
        help_text=_("A version of a model that you own is included in its aliases and promotion rules."),
    )
    description = forms.CharField(
        label=_("Description"), max_length=500, required=False, widget=forms.Textarea(attrs={"rows": 2})
    )
    visibility = forms.ChoiceField(label=_("Visible to"), choices=Visibility.choices, initial=Visibility.PRIVATE)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = Model.objects.editable_by(user).order_by("name")
        self.fields["model"].queryset = own  # type: ignore[attr-defined]  # a choice among rows, declared above

    def about(self) -> dict[str, Any]:
        """Arguments of `composition.compose` that both kinds have."""
        names = ("name", "model", "description", "visibility")
        return {"kind": self.kind} | {name: self.cleaned_data[name] for name in names}


class EnsembleForm(ComposeForm):
    """Up to five parts with their weights, and how their answers are joined."""

    kind = ENSEMBLE
    called: ClassVar = {"parts": "part1", "weights": "weight1"}

    way = forms.ChoiceField(
        label=_("Combination method"),
        required=False,
        choices=[("", _("Default of the task")), *METHOD_LABELS.items()],
    )
    iou = forms.FloatField(
        label=_("IoU threshold"),
        min_value=0,
        max_value=1,
        initial=0.55,
        help_text=_("Boxes of one class with a higher IoU belong to one object."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        rows = list_parts(user, tuple(METHODS))
        for number in range(1, MAX_PARTS + 1):
            needed = number <= MIN_PARTS
            self.fields[f"part{number}"] = VersionChoice(
                label=_("Model %(number)s") % {"number": number},
                queryset=rows,
                required=needed,
                empty_label=_("Choose a model") if needed else _("None"),
            )
            self.fields[f"weight{number}"] = forms.FloatField(
                label=_("Weight"), required=False, initial=1, min_value=0, max_value=1000
            )

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `composition.compose`."""
        values = self.cleaned_data
        numbers = [number for number in range(1, MAX_PARTS + 1) if values.get(f"part{number}")]
        return self.about() | {
            "parts": [values[f"part{number}"] for number in numbers],
            "weights": [1.0 if values[f"weight{number}"] is None else values[f"weight{number}"] for number in numbers],
            "way": values["way"],
            "iou": values["iou"],
        }

    def rows(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """Return the fields of the parts that every ensemble has, with their weights."""
        return [(self[f"part{number}"], self[f"weight{number}"]) for number in range(1, MIN_PARTS + 1)]

    def further_rows(self) -> list[tuple[forms.BoundField, forms.BoundField]]:
        """Return the fields of the other parts with their weights."""
        return [(self[f"part{number}"], self[f"weight{number}"]) for number in range(MIN_PARTS + 1, MAX_PARTS + 1)]


class ChainForm(ComposeForm):
    """A detector, and what looks at the objects it found."""

    kind = CHAIN
    called: ClassVar = {"parts": "first"}

    first = VersionChoice(label=_("Detector"), queryset=ModelVersion.objects.none(), empty_label=_("Choose a model"))
    second = VersionChoice(
        label=_("Classifier or tagger"),
        queryset=ModelVersion.objects.none(),
        empty_label=_("Choose a model"),
        help_text=_("Processes each object that the detector found, cropped from the image."),
    )
    min_score = forms.FloatField(
        label=_("Minimum confidence"), min_value=0, max_value=1, initial=0.3, help_text=_("Boxes below are ignored.")
    )
    margin = forms.FloatField(
        label=_("Margin"),
        min_value=0,
        max_value=1,
        required=False,
        help_text=_("Visible margin around a box, as a share of its sides. Default: as trained by the second model."),
    )
    only = forms.CharField(
        label=_("Only classes"),
        max_length=5000,
        required=False,
        help_text=_("Classes of the detector, separated by commas; others are returned unchanged. Default: all."),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, user=user, **kwargs)
        for name, tasks in (("first", FIRST_TASKS), ("second", SECOND_TASKS)):
            self.fields[name].queryset = list_parts(user, tasks)  # type: ignore[attr-defined]  # declared above

    def submission(self) -> dict[str, Any]:
        """Return the arguments of `composition.compose`."""
        values = self.cleaned_data
        return self.about() | {
            "parts": [values["first"], values["second"]],
            "min_score": values["min_score"],
            "margin": values["margin"],
            "only": [name.strip() for name in values["only"].split(",") if name.strip()],
        }


FORMS: dict[str, type[EnsembleForm] | type[ChainForm]] = {ENSEMBLE: EnsembleForm, CHAIN: ChainForm}
