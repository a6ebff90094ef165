"""Django admin for operators: to look, and to stop jobs. Rows are written by the services only."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy, ngettext
from unfold.admin import ModelAdmin, TabularInline

from aiplatform.lib.admin import LookOnly, LookOnlyInline
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_shown_on
from workers.core.models import (
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
    ResourceGroup,
    ResourceWindow,
    TimeRequest,
    VirtualCluster,
)
from workers.jobs import actions
from workers.resources.clusters import resource_groups
from workers.resources.clusters.forms.resource_groups import WEEKDAYS
from workers.resources.clusters.resource_groups import MAX_WINDOWS, Hours, kind_choices


class AttemptInline(LookOnlyInline):
    model = Attempt
    fields = ("number", "state", "reason", "message_text", "exit_code", "started_at", "ended_at")
    readonly_fields = ("message_text",)

    @admin.display(description=gettext_lazy("message"))
    def message_text(self, row: Attempt) -> str:
        return str(row.message)


class EventInline(LookOnlyInline):
    model = JobEvent
    fields = ("at", "attempt", "event", "state", "by", "message_text")
    readonly_fields = ("message_text",)

    @admin.display(description=gettext_lazy("message"))
    def message_text(self, row: JobEvent) -> str:
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

    @admin.action(description=gettext_lazy("Stop selected jobs"), permissions=["view"])
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
        self.message_user(
            request,
            ngettext("Stop of %(count)s job requested.", "Stop of %(count)s jobs requested.", requested)
            % {"count": requested},
        )


class DeviceInline(LookOnlyInline):
    model = Device
    fields = ("kind", "index", "model", "memory_mib", "capacity", "used", "health", "simulated")


@admin.register(Node)
class NodeAdmin(LookOnly):
    list_display = ("name", "state", "heartbeat_at", "cpu_cores", "memory_mib", "sandbox_tier", "mps")
    list_filter = ("state", "mps")
    inlines = (DeviceInline,)


@admin.register(Device)
class DeviceAdmin(LookOnly):
    list_display = ("__str__", "kind", "model", "memory_mib", "capacity", "used", "health", "simulated")
    list_filter = ("kind", "health", "simulated")
    list_select_related = ("node",)


@admin.register(Allocation)
class AllocationAdmin(LookOnly):
    list_display = ("id", "attempt", "node", "device", "rank", "share", "mps", "port", "released_at")
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
        "default_disk_bytes",
        "max_disk_bytes",
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


class ResourceGroupForm(forms.ModelForm):
    """Name, machines and kinds, refused as on the page."""

    kinds = forms.MultipleChoiceField(label=gettext_lazy("Reserved for"), widget=forms.CheckboxSelectMultiple)

    class Meta:
        model = ResourceGroup
        fields = ("name", "nodes", "kinds")

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fields["kinds"].choices = kind_choices()  # type: ignore[attr-defined]  # a field of choices, declared above

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = self.cleaned_data
        if not self.errors:
            with errors_shown_on(self):
                resource_groups.check(self.instance if self.instance.pk else None, **data)
        return data


class WindowForm(forms.ModelForm):
    """One window."""

    weekdays = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Start day"), coerce=int, choices=WEEKDAYS, widget=forms.CheckboxSelectMultiple
    )

    class Meta:
        model = ResourceWindow
        fields = ("weekdays", "begins", "ends")


class WindowInline(TabularInline):
    model = ResourceWindow
    form = WindowForm
    extra = 0
    max_num = MAX_WINDOWS

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        return super().get_formset(request, obj, validate_max=True, **kwargs)


@admin.register(ResourceGroup)
class ResourceGroupAdmin(ModelAdmin):
    """Made, changed and deleted by the service, which tells the scheduler and keeps the audit trail."""

    form = ResourceGroupForm
    list_display = ("name", "kinds")
    search_fields = ("name",)
    inlines = (WindowInline,)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        person: Any = request.user
        nodes = Node.objects.visible_to(person).exclude(state=Node.State.REMOVED)
        return super().formfield_for_manytomany(db_field, request, **{"queryset": nodes} | kwargs)

    def save_model(self, request: HttpRequest, obj: ResourceGroup, form: Any, change: bool) -> None:
        """Nothing yet: the group and its windows are saved together."""

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        by: Any = request.user
        hours = []
        for windows in formsets:
            windows.save(commit=False)  # the admin's log says what of them changed
            rows = [part.cleaned_data for part in windows.forms if part not in windows.deleted_forms]
            hours += [
                Hours(frozenset(window["weekdays"]), window["begins"], window["ends"]) for window in rows if window
            ]
        row = resource_groups.save(form.instance if change else None, **form.cleaned_data, hours=hours, by=by)
        form.instance.pk = row.pk

    def delete_model(self, request: HttpRequest, obj: ResourceGroup) -> None:
        by: Any = request.user
        resource_groups.delete(obj, by=by)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ResourceGroup]) -> None:
        for group in queryset:
            self.delete_model(request, group)
