"""People in Django's admin site, for operators. Passwords and rights change on the people pages only."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import ApiToken, AuditEntry, Delivery, Notification, OneTimeLink, Role, User, UserGroup
from accounts.services import root_inside
from aiplatform.lib.admin import LookOnly
from aiplatform.lib.errors import DomainError


@admin.register(User)
class UserAdmin(LookOnly):
    list_display = ["username", "nickname", "email", "phone", "is_active", "root_allowed", "last_login", "date_joined"]
    list_filter = ["is_active", "root_allowed", "roles"]
    search_fields = ["username", "nickname", "email", "phone"]
    show_full_result_count = False
    fields = [
        "username",
        "nickname",
        "email",
        "phone",
        "language",
        "time_zone",
        "theme",
        "is_active",
        "root_allowed",
        "root_inside",
        "roles",
        "user_groups",
    ]

    actions = ["allow_root", "revoke_root"]

    @admin.action(description=gettext_lazy("Allow root in the sandbox for the selected users"), permissions=["view"])
    def allow_root(self, request: HttpRequest, queryset: Any) -> None:
        self._set_root(request, queryset, allowed=True)

    @admin.action(description=gettext_lazy("Revoke root in the sandbox for the selected users"), permissions=["view"])
    def revoke_root(self, request: HttpRequest, queryset: Any) -> None:
        self._set_root(request, queryset, allowed=False)

    def _set_root(self, request: HttpRequest, people: Any, *, allowed: bool) -> None:
        by: Any = request.user
        by.require(Action.PEOPLE_MANAGE)
        for person in people:
            try:
                root_inside.allow(person, allowed=allowed, by=by)
            except DomainError as exc:
                self.message_user(request, f"{person.username}: {exc.message}", messages.WARNING)


@admin.register(Role)
class RoleAdmin(LookOnly):
    list_display = ["name", "description", "preset"]


@admin.register(UserGroup)
class UserGroupAdmin(LookOnly):
    list_display = ["name", "description", "created_at"]


@admin.register(ApiToken)
class ApiTokenAdmin(LookOnly):
    list_display = ["name", "user", "prefix", "scope", "created_at", "expires_at", "last_used_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__username", "prefix"]
    exclude = ["digest"]

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True  # revoking a leaked token


@admin.register(OneTimeLink)
class OneTimeLinkAdmin(LookOnly):
    list_display = ["purpose", "user", "created_at", "expires_at", "used_at"]
    exclude = ["digest"]


@admin.register(AuditEntry)
class AuditEntryAdmin(LookOnly):
    list_display = ["at", "actor", "behind", "verb", "target", "address"]
    search_fields = ["actor", "target", "verb", "address"]
    show_full_result_count = False


@admin.register(Notification)
class NotificationAdmin(LookOnly):
    list_display = ["title", "user", "kind", "created_at", "read_at"]
    list_filter = ["kind"]
    list_select_related = ["user"]
    search_fields = ["user__username", "title"]


@admin.register(Delivery)
class DeliveryAdmin(LookOnly):
    list_display = ["title", "channel", "target", "state", "attempts", "created_at", "ended_at", "error"]
    list_filter = ["state", "channel", "kind"]
    search_fields = ["target", "title"]
    exclude = ["secret", "sealed"]
