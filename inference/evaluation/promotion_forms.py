"""Form of a promotion rule."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from datasets.forms.version_choice import DatasetVersionChoice
from datasets.models import DatasetVersion
from inference.evaluation import promotion
from inference.evaluation.models import SPLIT_LABELS
from inference.registry.metric_labels import label_of
from inference.registry.models import Model, Stage

#: Values in the summary of an evaluation that do not rate a model.
NO_METRICS = ("threshold", "images_seen")


ALIASES = "model-aliases"  # id of the list of the aliases of the model, which the two fields offer


def _alias_field(label: Any, **declared: Any) -> forms.CharField:
    widget = forms.TextInput(attrs={"list": ALIASES, "autocomplete": "off"})
    return forms.CharField(label=label, max_length=50, required=False, widget=widget, **declared)


class RuleForm(forms.Form):
    """What an evaluation must show, and what its version gets."""

    metric = forms.ChoiceField(label=_("Metric"))
    at_least = forms.TypedChoiceField(
        label=_("Must be"),
        choices=[("1", _("at least")), ("0", _("at most"))],
        coerce=lambda value: value == "1",
    )
    bound = forms.FloatField(label=_("Value"))
    version = DatasetVersionChoice(
        label=_("Evaluated on"), queryset=DatasetVersion.objects.none(), empty_label=_("Choose a dataset")
    )
    split = forms.ChoiceField(label=_("Split"), choices=SPLIT_LABELS, required=False, initial="test")
    better_than = _alias_field(
        _("And better than"),
        help_text=_("An alias, such as champion. The version must be better on the same data."),
    )
    gives_alias = _alias_field(_("Assigns the alias"), initial="champion")
    gives_stage = forms.ChoiceField(
        label=_("Assigns the stage"),
        choices=[("", _("none")), (Stage.APPROVED.value, Stage.APPROVED.label)],
        required=False,
    )

    def __init__(self, *args: Any, user: User, model: Model, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        metric, version = self.fields["metric"], self.fields["version"]
        names = [name for name in promotion.metrics_of(model) if name not in NO_METRICS]
        metric.choices = [(name, label_of(name)) for name in names]  # type: ignore[attr-defined]  # a choice, declared above
        rows = DatasetVersion.objects.usable_by(user).filter(annotated=True).select_related("dataset")
        version.queryset = rows  # type: ignore[attr-defined]  # a choice among rows, declared above
