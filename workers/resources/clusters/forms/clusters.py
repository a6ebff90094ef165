"""Forms of the virtual clusters' pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.forms.picking import PeopleField
from accounts.services import finding
from aiplatform.lib import units
from workers.core import disk_limits
from workers.core.device_kinds import CPU, rules
from workers.core.models import VirtualCluster
from workers.planning import planner_input
from workers.planning.planner.snapshot import Quota
from workers.resources.clusters import bounds, members, quotas
from workers.resources.clusters.clusters import MAX_PAUSE
from workers.resources.clusters.quotas import KindPresent

MAX_VALUE = 100_000


@dataclass(frozen=True)
class KindRow:
    """One kind of card in the form: what there is, and the fields for it."""

    present: KindPresent
    guaranteed: forms.BoundField
    borrows: forms.BoundField
    per_user: forms.BoundField


class ClusterForm(forms.Form):
    """Name, limits and cards by kind. Empty limits mean none."""

    name = forms.CharField(label=_("Name"), max_length=50)
    max_runtime_hours = forms.FloatField(
        label=_("Maximum run time in hours"),
        required=False,
        min_value=0.01,
        max_value=24 * 365,
        help_text=_("Jobs are stopped after this time unless more is granted."),
        widget=forms.NumberInput(attrs={"placeholder": _("No limit")}),
    )
    max_pause_hours = forms.FloatField(
        label=_("Maximum pause in hours"),
        required=False,
        initial=units.number(MAX_PAUSE.total_seconds() / 3600),
        min_value=0.01,
        max_value=24 * 365,
        help_text=_("Then jobs with checkpoints release their GPUs; other jobs are stopped."),
        widget=forms.NumberInput(attrs={"placeholder": _("No limit")}),
    )
    jobs_per_user = forms.IntegerField(
        label=_("Running jobs per user"),
        required=False,
        min_value=0,
        max_value=MAX_VALUE,
        widget=forms.NumberInput(attrs={"placeholder": _("No limit")}),
    )
    environments_per_user = forms.IntegerField(
        label=_("Running workspaces per user"),
        required=False,
        min_value=0,
        max_value=MAX_VALUE,
        widget=forms.NumberInput(attrs={"placeholder": _("No limit")}),
    )

    default_disk_gib = forms.FloatField(
        label=_("Default disk limit per node (GiB)"),
        required=False,
        min_value=0.001,
        max_value=disk_limits.MAX_BYTES >> 30,
        widget=forms.NumberInput(attrs={"placeholder": _("Maximum")}),
        help_text=_("For jobs without a request."),
    )
    max_disk_gib = forms.FloatField(
        label=_("Maximum disk limit per node (GiB)"),
        required=False,
        min_value=0.001,
        max_value=disk_limits.MAX_BYTES >> 30,
        widget=forms.NumberInput(attrs={"placeholder": _("No limit")}),
        help_text=_("The most that a job can request."),
    )

    approves_environments = forms.BooleanField(
        label=_("Workspaces require approval"),
        required=False,
        help_text=_("Jobs start only after a cluster administrator approved them."),
    )

    def __init__(self, data: Any = None, *, cluster: VirtualCluster | None = None) -> None:
        super().__init__(data, initial=self._initial(cluster) if cluster else None)
        self.kinds = quotas.kinds_for(cluster)
        for kind in self.kinds:
            guaranteed, borrows, per_user = _labels(kind)
            self.fields[f"guaranteed_{kind.kind}"] = forms.IntegerField(
                label=guaranteed,
                required=False,
                min_value=0,
                max_value=MAX_VALUE,
                help_text=_("For jobs without GPUs. Leave empty for no limit of its own.")
                if kind.kind == CPU.name
                else _("Leave empty for no limit of its own."),
            )
            self.fields[f"borrows_{kind.kind}"] = forms.BooleanField(
                label=borrows,
                required=False,
                help_text=_(
                    "Jobs on borrowed resources are preempted when the owners request them, preemptible or not."
                ),
            )
            self.fields[f"per_user_{kind.kind}"] = forms.IntegerField(
                label=per_user, required=False, min_value=0, max_value=MAX_VALUE
            )

    def rows(self) -> Iterator[KindRow]:
        """The fields of each kind of card."""
        for kind in self.kinds:
            parts = (self[f"{name}_{kind.kind}"] for name in ("guaranteed", "borrows", "per_user"))
            yield KindRow(kind, *parts)

    def plain(self) -> list[forms.BoundField]:
        """The fields that have nothing to do with cards."""
        return [
            self[name]
            for name in (
                "name",
                "max_runtime_hours",
                "max_pause_hours",
                "jobs_per_user",
                "environments_per_user",
                "default_disk_gib",
                "max_disk_gib",
                "approves_environments",
            )
        ]

    def values(self) -> dict[str, Any]:
        """Arguments of `clusters.save`."""
        data = self.cleaned_data
        hours, pause = data["max_runtime_hours"], data["max_pause_hours"]
        return {
            "name": data["name"],
            "jobs_per_user": data["jobs_per_user"],
            "environments_per_user": data["environments_per_user"],
            "default_disk_bytes": disk_limits.from_gib(data["default_disk_gib"]),
            "max_disk_bytes": disk_limits.from_gib(data["max_disk_gib"]),
            "approves_environments": data["approves_environments"],
            "max_runtime": timedelta(hours=hours) if hours is not None else None,
            "max_pause": timedelta(hours=pause) if pause is not None else None,
            "devices": {
                kind.kind: Quota(
                    data[f"guaranteed_{kind.kind}"], data[f"borrows_{kind.kind}"], data[f"per_user_{kind.kind}"]
                )
                for kind in self.kinds
            },
        }

    @staticmethod
    def _initial(cluster: VirtualCluster) -> dict[str, Any]:
        span, pause = cluster.max_runtime, cluster.max_pause
        shown: dict[str, Any] = {
            "name": cluster.name,
            "jobs_per_user": cluster.jobs_per_user,
            "environments_per_user": cluster.environments_per_user,
            "default_disk_gib": _gib(cluster.default_disk_bytes),
            "max_disk_gib": _gib(cluster.max_disk_bytes),
            "approves_environments": cluster.approves_environments,
            "max_runtime_hours": units.number(span.total_seconds() / 3600) if span else None,
            "max_pause_hours": units.number(pause.total_seconds() / 3600) if pause else None,
        }
        for kind, quota in planner_input.quotas_of(cluster).items():
            shown |= {
                f"guaranteed_{kind}": quota.guaranteed,
                f"borrows_{kind}": quota.borrows,
                f"per_user_{kind}": quota.per_user,
            }
        return shown


def _gib(size: int | None) -> str | None:
    """Bytes as a field shows them, exact to the byte where the number is short."""
    gib = disk_limits.to_gib(size)
    return None if gib is None else f"{gib:.6f}".rstrip("0").rstrip(".")


def _labels(kind: KindPresent) -> tuple[str, str, str]:
    """Labels of the three fields of a kind: guaranteed, borrows, per person."""
    if kind.kind == CPU.name:
        return (
            gettext("CPU slots guaranteed"),
            gettext("Borrow CPU slots that other clusters do not use"),
            gettext("CPU slots per user"),
        )
    facts = {"kind": kind.label}
    return (
        gettext("Guaranteed %(kind)s devices") % facts,
        gettext("Borrow idle %(kind)s devices") % facts,
        gettext("%(kind)s devices per user") % facts,
    )


class MembersForm(forms.Form):
    """People to let into a cluster, among all active accounts; who is in already stays in."""

    people: Any = PeopleField(label=_("Users"))

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self.fields["people"].among = finding.by_exact_name()  # type: ignore[attr-defined]  # a field of people, declared above


class GroupForm(forms.Form):
    """A user group to let into a cluster."""

    group: Any = forms.ModelChoiceField(
        None,
        label=_("Group"),
        help_text=_("All members of the group, including later ones, are members of the cluster."),
    )

    def __init__(self, data: Any = None, *, cluster: VirtualCluster) -> None:
        super().__init__(data)
        self.fields["group"].queryset = members.groups_outside(cluster)  # type: ignore[attr-defined]  # a choice among rows, declared above


class BoundsForm(forms.Form):
    """Least and most cores and memory of one job on devices of one kind."""

    cpus_min = forms.FloatField(
        label=_("Minimum CPU cores"), min_value=0, help_text=_("Smaller requests are raised to this.")
    )
    cpus_max = forms.FloatField(
        label=_("Maximum CPU cores"), min_value=0.1, max_value=bounds.MAX_CPUS,
        help_text=_("Larger requests are rejected."),
    )  # fmt: skip
    memory_min_mib = forms.IntegerField(
        label=_("Minimum memory"), min_value=0, help_text=_("Smaller requests are raised to this.")
    )
    memory_max_gib = forms.FloatField(
        label=_("Maximum memory"), min_value=0.01, max_value=64 * 1024,
        help_text=_("A job that exceeds its memory is stopped."),
    )  # fmt: skip

    def __init__(self, data: Any = None, *, cluster: VirtualCluster, kind: str) -> None:
        now = bounds.bounds(cluster, kind)
        shown = {"cpus_min": now.cpus_min, "cpus_max": now.cpus_max, "memory_max_gib": now.memory_max_mib / 1024}
        initial = {name: units.number(value) for name, value in shown.items()}
        initial["memory_min_mib"] = str(now.memory_min_mib)
        super().__init__(data, initial=initial, prefix=kind)
        self.kind, self.label = kind, rules(kind).label
        cores, memory_mib = bounds.largest()
        self.effective = bounds.as_there_is(now, (cores, memory_mib))
        self.largest_words = _("%(cores)s cores and %(memory)s of memory") % {
            "cores": units.number(cores), "memory": units.memory(memory_mib),
        }  # fmt: skip
        self.is_limited_by_nodes = self.effective != now

    def values(self) -> bounds.Bounds:
        """What `bounds.set_bounds` takes."""
        data = self.cleaned_data
        memory_max_mib = round(data["memory_max_gib"] * units.MIB_PER_GIB)
        return bounds.Bounds(data["cpus_min"], data["cpus_max"], data["memory_min_mib"], memory_max_mib)


def bounds_forms(cluster: VirtualCluster) -> list[BoundsForm]:
    """One form for each kind of device there is, cores included."""
    return [BoundsForm(cluster=cluster, kind=kind) for kind, _label, _now in bounds.bounds_of_kinds(cluster)]
