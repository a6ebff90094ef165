"""Sort orders of the list of edge groups, for pages and API."""

from __future__ import annotations

from django.db.models.functions import Lower

from aiplatform.lib.ordering import Ordering

EDGE_GROUPS = Ordering("-created", created="pk", name=Lower("name"), owner=Lower("owner__username"))
