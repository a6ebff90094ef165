"""Forms of model versions: model card, stage and alias."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from inference.registry import cards, stages
from inference.registry.models import Model, ModelVersion, Stage

TEXTAREA = forms.Textarea(attrs={"rows": 3})


class CardForm(forms.Form):
    """All sections of a model card."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in cards.FIELDS:
            self.fields[field.name] = forms.CharField(
                label=field.label,
                help_text=field.help,
                max_length=field.longest,
                required=False,
                widget=TEXTAREA if field.markdown else forms.TextInput(),
            )


class StageForm(forms.Form):
    """Change of the stage of a version, with the reason."""

    stage = forms.ChoiceField(label=_("Stage"))
    reason = forms.CharField(
        label=_("Reason"),
        max_length=stages.MAX_REASON_LENGTH,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Shown in the history of the model."),
    )

    def __init__(self, *args: Any, version: ModelVersion, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        labels = dict(Stage.choices)
        choices = [(stage.value, labels[stage]) for stage in stages.MOVES[version.stage]]
        self.fields["stage"].choices = choices  # type: ignore[attr-defined]  # a ChoiceField, declared above


class AliasForm(forms.Form):
    """An alias and the version it points to."""

    name = forms.CharField(
        label=_("Alias"),
        max_length=50,
        initial="champion",
        help_text=_("Lowercase letters, digits and . _ -, such as champion. An existing alias is moved."),
    )
    version = forms.ModelChoiceField(label=_("Version"), queryset=ModelVersion.objects.none(), empty_label=None)

    called = {"alias": "name"}  # field in errors of the service → field of this form, see pages.errors_shown_on

    def __init__(self, *args: Any, model: Model, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        versions = model.versions.in_use().select_related("model").order_by("-number")
        self.fields["version"].queryset = versions  # type: ignore[attr-defined]  # a ModelChoiceField
