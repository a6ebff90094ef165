"""Sort orders of the list of push targets, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

PUSH_TARGETS = Ordering("-created", created="pk", name=Lower("name"), kind="kind", owner=Lower("owner__username"))
