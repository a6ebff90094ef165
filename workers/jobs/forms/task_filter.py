"""Filter of the operators' list of jobs."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from aiplatform.lib import search
from workers.core import kinds
from workers.core.models import VirtualCluster
from workers.core.states import JobState


class TaskFilter(forms.Form):
    """Filters of the task list; they live in the URL, and a wrong value filters nothing."""

    search = forms.CharField(required=False, max_length=100, strip=True, label=_("Name or user"))
    kind = forms.ChoiceField(required=False, label=_("Type"))
    state = forms.ChoiceField(required=False, label=_("State"))
    cluster: Any = forms.ModelChoiceField(None, required=False, label=_("Cluster"), empty_label=_("All clusters"))

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__(data)
        named = [(name, kinds.label_of(name)) for name in kinds.names()]
        self.fields["kind"].choices = [("", _("All types")), *named]  # type: ignore[attr-defined]  # a field of choices, declared above
        states = [("", _("All states")), ("live", _("Not ended")), *JobState.choices]
        self.fields["state"].choices = states  # type: ignore[attr-defined]  # a field of choices, declared above
        self.fields["cluster"].queryset = VirtualCluster.objects.visible_to(user)  # type: ignore[attr-defined]  # a choice among rows, declared above

    def apply(self, rows: Any) -> Any:
        """`rows` (jobs) that match."""
        self.is_valid()
        requested = self.cleaned_data
        rows = search.filter_by_text(rows, requested.get("search", ""), "name", "owner__username", "owner__nickname")
        if requested.get("kind"):
            rows = rows.filter(kind=requested["kind"])
        if requested.get("state") == "live":
            rows = rows.filter(ended_at=None)
        elif requested.get("state"):
            rows = rows.filter(state=requested["state"])
        return rows.filter(cluster=requested["cluster"]) if requested.get("cluster") else rows
