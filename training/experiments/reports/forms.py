"""The form of a report."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from training.experiments.models import Visibility
from training.experiments.reports.documents import LONGEST_BYTES
from training.experiments.reports.writing import LONGEST_TITLE


class ReportForm(forms.Form):
    """Title, who sees it, and the text."""

    title = forms.CharField(label=_("Title"), max_length=LONGEST_TITLE)
    visibility = forms.ChoiceField(label=_("Visible to"), choices=Visibility, initial=Visibility.PRIVATE)
    text = forms.CharField(
        label=_("Text"),
        required=False,
        strip=False,
        max_length=LONGEST_BYTES,
        widget=forms.Textarea(attrs={"rows": 24, "class": "mono", "spellcheck": "true", "data-report-text": ""}),
        help_text=_("Markdown. Insert panels with the buttons above."),
    )

    def values(self) -> dict[str, Any]:
        """Arguments of `writing.create` and `save`."""
        return {name: self.cleaned_data[name] for name in ("title", "visibility", "text")}
