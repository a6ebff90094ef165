"""Parameter sets in the menu "Start from" of a new training."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from training.presets.catalog import PRESETS
from training.programs.starting_points import MAX_ROWS, Source, StartingPoint
from training.runs import jobs
from training.runs.models import ParameterSet


def parameter_sets(user: User, kind: str) -> list[StartingPoint]:
    """Return the parameter sets that a user may use; only trainings start from one."""
    if kind != jobs.KIND:
        return []
    rows = ParameterSet.objects.usable_by(user).filter(preset__in=PRESETS).select_related("owner")
    form_url = reverse("training:job-submit")
    return [
        StartingPoint(f"{row.name} v{row.number}", _note(row, user), f"{form_url}?set={row.pk}")
        for row in rows.order_by("-updated_at")[:MAX_ROWS]
    ]


def _note(row: ParameterSet, user: User) -> str:
    title = _(PRESETS[row.preset].title)
    return title if row.owner_id == user.pk else f"{title} · {row.owner.get_full_name()}"


SOURCE = Source("parameter_sets", gettext_lazy("Parameter sets"), "save", 10, parameter_sets)
