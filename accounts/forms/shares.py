"""The form that shares a thing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from accounts.access import sharing
from accounts.forms.picking import PeopleField
from accounts.services import finding


class ShareForm(forms.Form):
    """People by name, or a group; and how much."""

    person = PeopleField(label=_("Users"), required=False)
    group = forms.ChoiceField(label=_("or group"), required=False)
    level = forms.ChoiceField(label=_("Level"), widget=forms.RadioSelect)

    def __init__(self, *args: Any, kind: sharing.Shareable, groups: QuerySet[Any], **kwargs: Any) -> None:
        kwargs.setdefault("initial", {"level": kind.levels[0]})
        super().__init__(*args, **kwargs)
        self.fields["person"].among = finding.by_exact_name()  # type: ignore[attr-defined]  # a field of people, declared above
        self.fields["group"].choices = [("", "–"), *((group.pk, group.name) for group in groups)]  # type: ignore[attr-defined]  # a field of choices, declared above
        self.fields["level"].choices = [(level, sharing.LEVEL_LABELS[level]) for level in kind.levels]  # type: ignore[attr-defined]  # a field of choices, declared above

    def clean_group(self) -> int | None:
        chosen = self.cleaned_data["group"]
        return int(chosen) if chosen else None
