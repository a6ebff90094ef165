"""The form that splits a version again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from datasets.models import DatasetVersion
from datasets.services import splits
from datasets.services.splits import SEED_MAX
from datasets.services.splitting import Wish


class SplitForm(forms.Form):
    """How to split a version again."""

    train = forms.IntegerField(label="train", min_value=0, max_value=100, initial=80)
    val = forms.IntegerField(label="val", min_value=0, max_value=100, initial=10)
    test = forms.IntegerField(label="test", min_value=0, max_value=100, initial=10)
    seed = forms.IntegerField(
        label=_("Seed"),
        min_value=0,
        max_value=SEED_MAX,
        initial=0,
        help_text=_("The same seed gives the same splits; another seed gives different ones."),
    )
    stratify = forms.BooleanField(
        label=_("Stratify: distribute each class according to the ratios"), required=False, initial=True
    )
    group = forms.ChoiceField(
        label=_("Keep together"),
        required=False,
        choices=[
            ("", _("Only identical files")),
            ("folder", _("Images of the same folder")),
            ("prefix", _("Images whose names differ only in their last number")),
        ],
        help_text=_("Images of one scene belong in one split. Identical files always stay together."),
    )

    def __init__(self, *args: Any, version: DatasetVersion, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not version.annotated:
            del self.fields["stratify"]

    def wish(self) -> Wish:
        """Return the requested split.

        Raises:
            Invalid: the shares are not 100 % together.
        """
        return splits.wish_of(**{"stratify": False} | self.cleaned_data)
