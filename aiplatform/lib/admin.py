"""Base classes of the admin site: mostly read-only, as services write the rows."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline


class MadeByServices:
    """Forbids adding and deleting: services do both, with the files and jobs of a row."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Unchanged(MadeByServices):
    """Forbids changing as well."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LookOnly(Unchanged, ModelAdmin):
    """Read-only."""


class LookOnlyInline(Unchanged, TabularInline):
    """Read-only, as a table on the page of another row."""

    extra = 0
    can_delete = False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields
