"""Django's admin site as operators get it: mostly to look, for rows are written by services."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from unfold.admin import ModelAdmin, TabularInline


class MadeByServices:
    """Neither added nor deleted here: services do both, and care for the files and jobs that belong to a row."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Unchanged(MadeByServices):
    """Not changed here either."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class LookOnly(Unchanged, ModelAdmin):
    """To look, not to touch."""


class LookOnlyInline(Unchanged, TabularInline):
    """The same, as a table on the page of another row."""

    extra = 0
    can_delete = False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields
