"""Resource request form: the part of every submit form that says what a job requests of the machines."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.row_choices import RowChoice, offer
from workers.core import disk_limits
from workers.core.device_kinds import GPU, KINDS, rules
from workers.core.models import Job, VirtualCluster
from workers.core.models.nodes import SHARES_PER_DEVICE
from workers.jobs import resource_request, root_rights
from workers.jobs.resource_request import Resources
from workers.resources.clusters import members
from workers.resources.nodes import device_rules


class ClusterChoice(RowChoice):
    """One of the clusters that a person may use."""

    columns = ("name",)

    def text_of(self, *values: Any) -> str:
        """The name."""
        return str(values[0])


class ResourceForm(forms.Form):
    """Fields of `resource_request.Resources`; forms of the apps inherit it and show `workers/_resource_fields.html`."""

    cluster = ClusterChoice(
        VirtualCluster.objects.none(), label=gettext_lazy("Virtual cluster"), required=False, empty_label=None
    )
    device = forms.ChoiceField(label=gettext_lazy("Device type"), required=False)
    gpus_per_node = forms.IntegerField(
        label=gettext_lazy("GPUs"), min_value=0, max_value=128, help_text=gettext_lazy("0 runs on the CPU.")
    )
    share = forms.TypedChoiceField(label=gettext_lazy("GPU utilization"), coerce=int, required=False)
    cpus = forms.FloatField(label=gettext_lazy("CPU cores"), min_value=0.1, max_value=1024)
    memory_gib = forms.FloatField(
        label=gettext_lazy("Maximum memory"),
        min_value=0.1,
        max_value=100_000,
        required=False,
        help_text=gettext_lazy(
            "Memory of the node, not of the GPU. A job that exceeds it is stopped. Leave empty for the maximum allowed."
        ),
    )
    max_disk_gib = forms.FloatField(
        label=gettext_lazy("Disk limit"),
        min_value=0.001,
        max_value=disk_limits.MAX_BYTES >> 30,
        required=False,
        help_text=gettext_lazy("A job that exceeds it is stopped. Leave empty to use the limit of the cluster."),
    )
    priority = forms.IntegerField(
        label=gettext_lazy("Priority"),
        min_value=0,
        max_value=resource_request.HIGHEST_PRIORITY,
        initial=0,
        required=False,
        help_text=gettext_lazy("0 to 99; a higher priority starts first."),
    )
    urgent = forms.BooleanField(
        label=gettext_lazy("Urgent: starts before all other jobs and can preempt them"), required=False
    )
    max_runtime_min = forms.IntegerField(
        label=gettext_lazy("Maximum run time"),
        min_value=1,
        max_value=525_600,
        required=False,
        help_text=gettext_lazy("A short job can fill a gap before others. Default: the limit of the cluster."),
    )
    preemptible = forms.BooleanField(
        label=gettext_lazy("Can be preempted by more important jobs and continues later"),
        required=False,
        help_text=gettext_lazy("Jobs on GPUs borrowed from another cluster are always preemptible."),
    )

    root_inside = forms.BooleanField(label=gettext_lazy("Root in the sandbox"), required=False)

    offers_root = False  #: whether root inside can be asked for, by those who may
    #: Kinds of devices that its jobs can use.
    device_kinds: tuple[str, ...] = tuple(KINDS)
    #: Fields of `Resources` that have another name here.
    called: Mapping[str, str] = {
        "device_kind": "device", "device_model": "device", "memory_mib": "memory_gib",
        "max_disk_bytes": "max_disk_gib", "max_runtime": "max_runtime_min",
    }  # fmt: skip

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        clusters = VirtualCluster.objects.visible_to(user).filter(memberships__user=user)
        offer(clusters, self.fields["cluster"])
        self.fields["cluster"].initial = members.current_id(user)
        self.devices = device_rules.on_offer(self.device_kinds)
        self.fields["device"].choices = self._device_choices()  # type: ignore[attr-defined]  # a field of choices, declared above
        self.fields["device"].initial = self.devices[0].value
        self.memory_of = dict(resource_request.shares_on_offer())
        self.fields["share"].choices = [  # type: ignore[attr-defined]  # a field of choices, declared above
            (SHARES_PER_DEVICE, _("Whole GPUs")),
            *((eighths, _share_words(eighths, mib)) for eighths, mib in reversed(self.memory_of.items())),
        ]
        if not user.can(Action.JOBS_URGENT):
            del self.fields["urgent"]
        if self.offers_root and user.uses_root:
            self.fields["root_inside"].help_text = _root_help(*root_rights.machines())
        else:
            del self.fields["root_inside"]

    def _device_choices(self) -> list[tuple[str, str]]:
        """The devices that nodes have, and the form's initial one even if no node has it any more."""
        choices = [(device.value, device.label) for device in self.devices]
        initial = str(self.initial.get("device") or "")
        return choices if initial in ("", *(value for value, _label in choices)) else [*choices, (initial, initial)]

    @property
    def summary(self) -> str:
        """Return the devices of the current form in a few words, even if it is incomplete: "2 GPUs", "4 CPU cores"."""
        data = self.cleaned_data
        nodes, devices, cores = data.get("nodes") or 1, data.get("gpus_per_node"), data.get("cpus")
        if devices is None or cores is None:
            return ""
        share = data.get("share") or SHARES_PER_DEVICE
        if not devices:
            text = ngettext("%(count)s CPU core", "%(count)s CPU cores", math.ceil(cores)) % {"count": f"{cores:g}"}
        elif share < SHARES_PER_DEVICE:
            text = _("%(eighths)s/8 of a GPU") % {"eighths": share}
        else:
            kind, model = device_rules.parsed(data.get("device") or "")
            if model or kind not in ("", GPU.name):
                text = f"{devices} × {model or rules(kind).label}"
            else:
                text = ngettext("%(count)s GPU", "%(count)s GPUs", devices) % {"count": devices}
        return text if nodes == 1 else f"{nodes} × {text}"

    @property
    def more_is_wrong(self) -> bool:
        """Whether one of the folded fields has an error."""
        return any(
            self.errors.get(name)
            for name in ("memory_gib", "max_disk_gib", "priority", "max_runtime_min", "nodes", "min_nodes", "processes")
        )

    def unclear(self) -> str:
        """Return the first error of a field that was sent and that `resources` leaves out; "" without one."""
        names = (
            "cluster", "device", "nodes", "min_nodes", "share", "memory_gib", "max_disk_gib", "priority",
            "max_runtime_min",
        )  # fmt: skip
        wrong = next((name for name in names if name in self.data and self.errors.get(name)), "")
        return f"{self[wrong].label}: {self.errors[wrong][0]}" if wrong else ""

    def resources(self) -> Resources:
        """The request; fields that are missing or wrong are left out, so that a half-filled form can be previewed."""
        data = self.cleaned_data
        share = data.get("share") or SHARES_PER_DEVICE
        minutes, gib = data.get("max_runtime_min"), data.get("memory_gib")
        requested = Resources(
            share=share,
            card_memory_mib=self.memory_of.get(share, 0),
            memory_mib=round(gib * 1024) if gib else 0,
            max_disk_bytes=disk_limits.from_gib(data.get("max_disk_gib")),
            priority=Job.URGENT if data.get("urgent") else data.get("priority") or 0,
            preemptible=bool(data.get("preemptible")),
            max_runtime=timedelta(minutes=minutes) if minutes else None,
        )
        if data.get("root_inside"):
            requested["root_inside"] = True
        if data.get("cluster") is not None:
            requested["cluster"] = data["cluster"]
        if data.get("device"):
            requested["device_kind"], requested["device_model"] = device_rules.parsed(data["device"])
        for name in ("nodes", "min_nodes", "gpus_per_node", "cpus"):
            if data.get(name) is not None:
                requested[name] = data[name]
        return requested


def _root_help(names: list[str], machines: int) -> str:
    """Help text of root inside: what it is, and which nodes offer it."""
    text = _(
        "Programs are root inside the job and your user outside. A workspace on one node can install system "
        "packages, which stay with it and are not part of a saved image. On several nodes the system is "
        "read-only."
    )
    if len(names) == machines:
        return text
    offered = (
        _("No node supports it at the moment.")
        if not names
        else _("Supported by %(count)s of %(machines)s nodes: %(names)s.")
    )
    return f"{text} {offered % {'count': len(names), 'machines': machines, 'names': ', '.join(names[:8])}}"


class PriorityForm(forms.Form):
    """Another priority for a job that waits."""

    priority = forms.IntegerField(
        label=gettext_lazy("Priority"), min_value=0, max_value=resource_request.HIGHEST_PRIORITY
    )
    urgent = forms.BooleanField(label=gettext_lazy("Urgent"), required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not user.can(Action.JOBS_URGENT):
            del self.fields["urgent"]

    def requested(self) -> int:
        """The number to give it."""
        return Job.URGENT if self.cleaned_data.get("urgent") else int(self.cleaned_data["priority"])


def initial_of(requested: Resources) -> dict[str, Any]:
    """Initial values of the form for what was requested before."""
    plain = ("cluster", "nodes", "gpus_per_node", "share", "cpus", "preemptible", "root_inside")
    span, priority = requested.get("max_runtime"), requested.get("priority", 0)
    device = device_rules.value_of(
        requested.get("device_kind", "gpu"), requested.get("device_model", ""), requested.get("gpus_per_node", 0)
    )
    return {name: requested[name] for name in plain if name in requested} | {  # type: ignore[literal-required]  # names of the typed dictionary, one by one
        "device": device,
        "priority": 0 if priority >= Job.URGENT else priority,
        "urgent": priority >= Job.URGENT,
        "max_runtime_min": int(span.total_seconds() // 60) if span else None,
        "min_nodes": requested.get("min_nodes") or None,  # 0: all or none, which an empty field says
        "memory_gib": math.floor(requested["memory_mib"] / 1024 * 100) / 100 if requested.get("memory_mib") else None,
        "max_disk_gib": disk_limits.to_gib(requested.get("max_disk_bytes")),
    }


def _share_words(eighths: int, mib: int) -> str:
    return _("%(eighths)s/8 of a GPU, %(gib)s GiB of its memory") % {
        "eighths": eighths,
        "gib": f"{mib / 1024:.1f}".removesuffix(".0"),
    }
