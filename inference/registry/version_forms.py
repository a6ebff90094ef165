"""Forms of the registry: card, stage, alias, filters of its list."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from datasets.models import DatasetVersion
from datasets.version_choice import DatasetVersionChoice
from inference.evaluation import promotion
from inference.evaluation.models import SPLIT_WORDS
from inference.registry import cards, stages
from inference.registry.models import Model, ModelVersion, Stage

LONG = forms.Textarea(attrs={"rows": 5})


class CardForm(forms.Form):
    """The parts of a card."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in cards.FIELDS:
            self.fields[field.name] = forms.CharField(
                label=field.label,
                help_text=field.help,
                max_length=field.longest,
                required=False,
                widget=LONG if field.markdown else forms.TextInput(),
            )


class StageForm(forms.Form):
    """Where a version goes, and why."""

    stage = forms.ChoiceField(label=_("Stage"))
    reason = forms.CharField(
        label=_("Reason"),
        max_length=stages.LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Others read it in the history of the model."),
    )

    def __init__(self, *args: Any, version: ModelVersion, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        words = dict(Stage.choices)
        ways = [(stage.value, words[stage]) for stage in stages.MOVES[version.stage]]
        self.fields["stage"].choices = ways  # type: ignore[attr-defined]  # a choice, declared above


class RuleForm(forms.Form):
    """What an evaluation must show, and what its version gets."""

    metric = forms.ChoiceField(label=_("Figure"))
    at_least = forms.TypedChoiceField(
        label=_("Must be"),
        choices=[("1", _("at least")), ("0", _("at most"))],
        coerce=lambda value: value == "1",
    )
    bound = forms.FloatField(label=_("Value"))
    version = DatasetVersionChoice(
        label=_("Measured on"), queryset=DatasetVersion.objects.none(), empty_label=_("Choose a dataset")
    )
    split = forms.ChoiceField(label=_("Split"), choices=SPLIT_WORDS, required=False, initial="test")
    better_than = forms.CharField(
        label=_("And better than"),
        max_length=50,
        required=False,
        help_text=_("An alias such as champion: the version must beat that one on the same data. Empty: none."),
    )
    gives_alias = forms.CharField(label=_("Gets the alias"), max_length=50, required=False, initial="champion")
    gives_stage = forms.ChoiceField(
        label=_("Gets the stage"),
        choices=[("", _("none")), (Stage.APPROVED.value, Stage.APPROVED.label)],
        required=False,
    )

    def __init__(self, *args: Any, user: User, model: Model, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        metric, version = self.fields["metric"], self.fields["version"]
        names = promotion.metrics_of(model)
        metric.choices = [(name, name) for name in names]  # type: ignore[attr-defined]  # a choice, declared above
        rows = DatasetVersion.objects.usable_by(user).filter(annotated=True).select_related("dataset")
        version.queryset = rows  # type: ignore[attr-defined]  # a choice among rows, declared above


class AliasForm(forms.Form):
    """An alias, and the version it stands for."""

    name = forms.CharField(
        label=_("Alias"),
        max_length=50,
        initial="champion",
        help_text=_("Small letters, digits and . _ - such as champion. One that is there already moves."),
    )
    version = forms.ModelChoiceField(label=_("Version"), queryset=ModelVersion.objects.none(), empty_label=None)

    called = {"alias": "name"}

    def __init__(self, *args: Any, model: Model, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = model.versions.in_use().select_related("model").order_by("-number")
        self.fields["version"].queryset = rows  # type: ignore[attr-defined]  # a choice among rows, declared above
