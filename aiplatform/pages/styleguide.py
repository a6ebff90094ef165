"""Sample content of the styleguide page: a row of each kind, a form with each control."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.ordering import ListPage
from aiplatform.templatetags.ui import CHIPS, icon_names


class SampleForm(forms.Form):
    name = forms.CharField(label=_("Name"), max_length=25, help_text=_("At most 25 characters."))
    budget = forms.IntegerField(label=_("Time budget"), min_value=1)
    preset = forms.ChoiceField(
        label=_("Preset"), choices=[("detect", _("Detect objects")), ("classify", _("Classify"))]
    )
    note = forms.CharField(label=_("Note"), widget=forms.Textarea, required=False)
    visible = forms.ChoiceField(
        label=_("Visible to"),
        choices=[("private", _("Only me")), ("public", _("All users"))],
        widget=forms.RadioSelect,
    )
    augment = forms.BooleanField(label=_("Flip images at random"), required=False)


def sample() -> dict[str, Any]:
    """Context of templates/styleguide.html."""
    form = SampleForm({"name": "bccd", "budget": "0", "preset": "detect", "visible": "private"})
    form.is_valid()
    rows = [
        ("bccd detector", "running", "", 2, 4),
        (
            "ablation with a longer name than the others",
            "queued",
            _("Waiting for 2 free GPUs; position 3 in the queue"),
            2,
            31,
        ),
        ("night run", "paused", _("Paused by alice"), 1, 190),
        ("first try", "failed", _("The program ran out of memory"), 4, 3000),
        ("baseline", "succeeded", "", 1, 9000),
    ]
    parts = [("queued", 3), ("running", 5), ("paused", 1), ("failed", 2), ("succeeded", 21)]
    return {
        "chips": list(CHIPS),
        "icons": sorted(icon_names()),
        "form": form,
        "eight": range(1, 9),
        "bar_label": _("Jobs by state"),
        "sample_states": [(state, CHIPS[state][2]) for state, _count in parts],
        "sample_page": ListPage(ordering="-name"),
        "parts": [{"label": CHIPS[state][2], "hue": CHIPS[state][0], "count": count} for state, count in parts],
        "rows": [
            {"name": name, "state": state, "why": why, "cards": cards, "at": now() - timedelta(minutes=minutes)}
            for name, state, why, cards, minutes in rows
        ],
    }
