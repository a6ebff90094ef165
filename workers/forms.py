"""Forms of the cluster and task pages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from workers import kinds
from workers.models import VirtualCluster
from workers.services import job_page, people
from workers.states import JobState


class TaskFilter(forms.Form):
    """Filters of the task list; they live in the URL, and a wrong value filters nothing."""

    search = forms.CharField(required=False, max_length=100, strip=True, label=_("Name or person"))
    kind = forms.ChoiceField(required=False, label=_("Type"))
    state = forms.ChoiceField(required=False, label=_("State"))
    cluster: Any = forms.ModelChoiceField(None, required=False, label=_("Cluster"), empty_label=_("All clusters"))

    def __init__(self, data: Any, *, user: User) -> None:
        super().__init__(data)
        named = [(name, job_page.kind_label(name)) for name in kinds.names()]
        self.fields["kind"].choices = [("", _("All types")), *named]  # type: ignore[attr-defined]
        states = [("", _("All states")), ("live", _("Not ended")), *JobState.choices]
        self.fields["state"].choices = states  # type: ignore[attr-defined]
        self.fields["cluster"].queryset = VirtualCluster.objects.visible_to(user)  # type: ignore[attr-defined]

    def apply(self, rows: Any) -> Any:
        """`rows` (jobs) that match."""
        self.is_valid()
        asked = self.cleaned_data
        if asked.get("search"):
            words = asked["search"]
            found = Q(name__icontains=words) | Q(owner__username__icontains=words)
            rows = rows.filter(found | Q(owner__nickname__icontains=words))
        if asked.get("kind"):
            rows = rows.filter(kind=asked["kind"])
        if asked.get("state") == "live":
            rows = rows.filter(ended_at=None)
        elif asked.get("state"):
            rows = rows.filter(state=asked["state"])
        return rows.filter(cluster=asked["cluster"]) if asked.get("cluster") else rows


class ClusterForm(forms.Form):
    """Name and limits of a virtual cluster. Empty limits mean none."""

    name = forms.CharField(label=_("Name"), max_length=50)
    gpu_quota = forms.IntegerField(
        label=_("GPUs"),
        required=False,
        min_value=0,
        max_value=100_000,
        help_text=_("Cards the cluster may use at once. Empty: all there are."),
    )
    gpus_per_user = forms.IntegerField(
        label=_("GPUs per person"), required=False, min_value=0, max_value=100_000, help_text=_("Empty: no limit.")
    )
    jobs_per_user = forms.IntegerField(
        label=_("Running jobs per person"),
        required=False,
        min_value=0,
        max_value=100_000,
        help_text=_("Empty: no limit."),
    )
    max_runtime_hours = forms.FloatField(
        label=_("Maximum run time in hours"),
        required=False,
        min_value=0.01,
        max_value=24 * 365,
        help_text=_("Jobs are stopped after this time. Empty: no limit."),
    )

    def limits(self) -> dict[str, Any]:
        """Arguments of `clusters.save`."""
        given = dict(self.cleaned_data)
        hours = given.pop("max_runtime_hours")
        return given | {"max_runtime": timedelta(hours=hours) if hours is not None else None}

    @staticmethod
    def initial_of(cluster: VirtualCluster) -> dict[str, Any]:
        """What the form shows of `cluster`."""
        span = cluster.max_runtime
        return {
            "name": cluster.name,
            "gpu_quota": cluster.gpu_quota,
            "gpus_per_user": cluster.gpus_per_user,
            "jobs_per_user": cluster.jobs_per_user,
            "max_runtime_hours": round(span.total_seconds() / 3600, 4) if span else None,
        }


class MembersForm(forms.Form):
    """People to let into a cluster: those with an active account who are not in it."""

    people: Any = forms.ModelMultipleChoiceField(
        None, label=_("People"), widget=forms.SelectMultiple(attrs={"size": 8}), help_text=_("Hold Ctrl for several.")
    )

    def __init__(self, data: Any = None, *, cluster: VirtualCluster) -> None:
        super().__init__(data)
        outside: QuerySet[User] = people.outside(cluster)
        self.fields["people"].queryset = outside  # type: ignore[attr-defined]
