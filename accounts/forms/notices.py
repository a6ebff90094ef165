"""The form of notification channels: one row per kind, one box per channel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import NoticeChoices
from accounts.services import notify


@dataclass(frozen=True)
class Row:
    """One kind with its boxes."""

    kind: notify.Kind
    mail: forms.BoundField
    webhook: forms.BoundField


class NoticeForm(forms.Form):
    """Mail and webhook are chosen kind by kind; in the platform everything is shown."""

    webhook_url = forms.CharField(
        label=_("Webhook address"),
        max_length=500,
        required=False,
        help_text=_("The selected notifications are sent there as signed JSON. Leave empty for none."),
        widget=forms.URLInput(attrs={"placeholder": "https://"}),
    )

    def __init__(self, data: Any = None, *, chosen: NoticeChoices) -> None:
        initial: dict[str, Any] = {"webhook_url": chosen.webhook_url}
        for name in notify.KINDS.names():
            initial[f"mail-{name}"] = name in chosen.mail
            initial[f"webhook-{name}"] = name in chosen.webhook
        super().__init__(data, initial=initial)
        for kind in notify.KINDS:
            for channel, word in (("mail", _("mail")), ("webhook", _("webhook"))):
                box = forms.CheckboxInput(attrs={"aria-label": f"{kind.label}: {word}"})
                self.fields[f"{channel}-{kind.name}"] = forms.BooleanField(required=False, widget=box)

    def rows(self) -> Iterator[Row]:
        for kind in notify.KINDS:
            yield Row(kind, self[f"mail-{kind.name}"], self[f"webhook-{kind.name}"])

    def chosen(self, channel: str) -> list[str]:
        """Names of the kinds ticked for `channel`."""
        return [name for name in notify.KINDS.names() if self.cleaned_data.get(f"{channel}-{name}")]
