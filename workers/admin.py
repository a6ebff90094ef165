"""Django admin for operators: to look, and to stop jobs. Rows are written by the services only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.admin import ModelAdmin

from aiplatform.lib.admin import LookOnly, LookOnlyInline
from aiplatform.lib.errors import DomainError
from workers.jobs import actions
from workers.models import (
    Alarm,
    AlarmAddress,
    AlarmRule,
    Allocation,
    Attempt,
    ClusterDevice,
    ClusterGroup,
    Device,
    Job,
    JobEvent,
    JobLimit,
    Lease,
    Membership,
    Node,
    TimeRequest,
    VirtualCluster,
)


class AttemptInline(LookOnlyInline):
    model = Attempt
    fields = ("number", "state", "reason", "told", "exit_code", "started_at", "ended_at")
    readonly_fields = ("told",)

    @admin.display(description=gettext_lazy("message"))
    def told(self, row: Attempt) -> str:
        return str(row.message)


class EventInline(LookOnlyInline):
    model = JobEvent
    fields = ("at", "attempt", "event", "state", "by", "told")
    readonly_fields = ("told",)

    @admin.display(description=gettext_lazy("message"))
    def told(self, row: JobEvent) -> str:
        return str(row.message)


@admin.register(Job)
class JobAdmin(LookOnly):
    list_display = ("id", "name", "kind", "owner", "cluster", "state", "attempt_number", "created_at", "ended_at")
    list_filter = ("state", "kind", "cluster")
    list_select_related = ("owner", "cluster")
    list_per_page = 50
    show_full_result_count = False
    search_fields = ("name", "owner__username")
    ordering = ("-id",)
    inlines = (AttemptInline, EventInline)
    actions = ("stop",)

    @admin.action(description=gettext_lazy("Stop the chosen jobs"), permissions=["view"])
    def stop(self, request: HttpRequest, chosen: QuerySet[Job]) -> None:
        """Ask each to stop; those that ended meanwhile are passed over."""
        requested = 0
        operator: Any = request.user
        for job in chosen:
            try:
                actions.stop(job, by=operator)
                requested += 1
            except DomainError as refusal:
                self.message_user(request, f"{job}: {refusal.message}", messages.WARNING)
        self.message_user(request, _("Asked %(count)s jobs to stop.") % {"count": requested})


class DeviceInline(LookOnlyInline):
    model = Device
    fields = ("kind", "index", "model", "memory_mib", "capacity", "used", "health", "simulated")


@admin.register(Node)
class NodeAdmin(LookOnly):
    list_display = ("name", "state", "heartbeat_at", "cpu_cores", "memory_mib", "sandbox_tier")
    list_filter = ("state",)
    inlines = (DeviceInline,)


@admin.register(Device)
class DeviceAdmin(LookOnly):
    list_display = ("__str__", "kind", "model", "memory_mib", "capacity", "used", "health", "simulated")
    list_filter = ("kind", "health", "simulated")
    list_select_related = ("node",)


@admin.register(Allocation)
class AllocationAdmin(LookOnly):
    list_display = ("id", "attempt", "node", "device", "rank", "share", "port", "released_at")
    list_filter = (("released_at", admin.EmptyFieldListFilter),)
    list_select_related = ("attempt__job", "node", "device__node")
    show_full_result_count = False


@admin.register(Lease)
class LeaseAdmin(LookOnly):
    list_display = ("name", "holder", "epoch", "renewed_at")


class QuotaInline(LookOnlyInline):
    model = ClusterDevice
    fields = ("kind", "guaranteed", "borrows", "per_user")


class BoundsInline(LookOnlyInline):
    model = JobLimit
    fields = ("kind", "cpus_min", "cpus_max", "memory_min_mib", "memory_max_mib")


class GroupInline(LookOnlyInline):
    model = ClusterGroup
    fields = ("group", "added_at")


class MembershipInline(LookOnlyInline):
    model = Membership
    fields = ("user", "direct", "administers", "is_current", "added_at")


@admin.register(TimeRequest)
class TimeRequestAdmin(LookOnly):
    list_display = ("id", "job", "requested_by", "span", "reason", "answer", "answered_by", "requested_at")
    list_filter = ("answer",)
    list_select_related = ("job", "requested_by", "answered_by")


@admin.register(VirtualCluster)
class ClusterAdmin(ModelAdmin):
    """Name and limits. Cards and members are changed on the cluster's own pages, which keep their rules."""

    list_display = (
        "name",
        "jobs_per_user",
        "environments_per_user",
        "max_runtime",
        "max_pause",
        "created_at",
        "closed_at",
    )
    list_filter = (("closed_at", admin.EmptyFieldListFilter),)
    search_fields = ("name",)
    actions = None
    inlines = (QuotaInline, BoundsInline, GroupInline, MembershipInline)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Alarm)
class AlarmAdmin(LookOnly):
    list_display = ["rule", "subject", "severity", "value", "seen_at", "raised_at", "told_at", "ended_at"]
    list_filter = ["severity", "rule"]
    list_select_related = ["rule"]
    search_fields = ["subject"]


@admin.register(AlarmRule)
class AlarmRuleAdmin(LookOnly):
    list_display = ["key", "enabled", "severity", "threshold", "for_s", "send"]


@admin.register(AlarmAddress)
class AlarmAddressAdmin(LookOnly):
    list_display = ["target", "channel", "least", "enabled", "made_at"]
    exclude = ["secret"]
