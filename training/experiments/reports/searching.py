"""How the search of the whole site finds reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.urls import reverse

from aiplatform.lib import search
from training.experiments.reports.models import Report


def reports(user: Any, words: str, limit: int) -> Iterable[search.Hit]:
    """Reports whose title holds the words."""
    rows = search.filter_by_text(Report.objects.visible_to(user), words, "title").order_by("-updated_at", "-pk")
    return [search.Hit(row.title, reverse("reports:detail", args=[row.pk])) for row in rows.defer("text")[:limit]]
