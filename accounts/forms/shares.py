"""The form that shares a thing."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import QuerySet
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from accounts.access import sharing
from accounts.forms.picking import PeopleField
from accounts.services import finding

LEVEL_HELP: dict[str, Any] = {
    sharing.VIEW: _("See and download."),
    sharing.ANNOTATE: _("Also annotate its images."),
    sharing.REVIEW: _("Also review annotations."),
    sharing.USE: _("Also train, evaluate, annotate or deploy with it."),
    sharing.MANAGE: _("Also change, delete and share it."),
}


def _choice(level: str, help_text: Any) -> SafeString:
    label = sharing.LEVEL_LABELS[level]
    return format_html('<span><b>{}</b> <span class="second">{}</span></span>', label, help_text)


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
        self.fields["level"].choices = [  # type: ignore[attr-defined]  # a field of choices, declared above
            (level, sharing.LEVEL_LABELS[level] if kind.help_text else _choice(level, LEVEL_HELP[level]))
            for level in kind.levels
        ]

    def clean_group(self) -> int | None:
        chosen = self.cleaned_data["group"]
        return int(chosen) if chosen else None
