"""Pages of the audit trail: search, filters, CSV."""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_date
from django.utils.timezone import localtime, make_aware
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import AuditEntry
from accounts.presentation import audit_facts, audit_sentences
from accounts.services import audit
from aiplatform.lib.downloads import csv_answer
from aiplatform.lib.keyset import BACKWARD, FORWARD, page
from aiplatform.lib.pages import needs

MAX_EXPORTED = 50_000  # rows of one file; an older part is reached by the date filter


def _day(text: str, clock: time) -> datetime | None:
    try:
        day = parse_date(text)
    except ValueError:
        return None
    return make_aware(datetime.combine(day, clock)) if day else None


def _filtered(request: SignedInRequest) -> tuple[QuerySet[Any], dict[str, str]]:
    """Return the entries the filters leave, and the filters."""
    filters = {name: request.GET.get(name, "").strip()[:100] for name in ("q", "verb", "person", "since", "until")}
    rows = AuditEntry.objects.visible_to(request.user)
    if filters["q"]:
        rows = rows.containing(filters["q"])
    if filters["verb"]:
        rows = rows.filter(verb=filters["verb"].replace("\x00", ""))
    if filters["person"].isdecimal() and len(filters["person"]) < 19:
        rows = rows.filter(actor_id=int(filters["person"]))
    if since := _day(filters["since"], time.min):
        rows = rows.filter(at__gte=since)
    if until := _day(filters["until"], time.max):
        rows = rows.filter(at__lte=until)
    return rows, filters


@needs(Action.AUDIT_VIEW)
def trail(request: SignedInRequest) -> HttpResponse:
    """Who did what to whom, newest first."""
    rows, filters = _filtered(request)
    entries = page(request, rows)
    audit_sentences.add_display(entries.rows, reader=request.user)
    query = request.GET.copy()
    query.pop(FORWARD, None)
    query.pop(BACKWARD, None)
    context = {
        "page": entries,
        "filters": filters,
        "verbs": audit.verb_choices(),
        "query": query.urlencode(),
    }
    return render(request, "accounts/_audit_rows.html" if request.htmx else "accounts/audit.html", context)


@needs(Action.AUDIT_VIEW)
def export(request: SignedInRequest) -> HttpResponse:
    """Send the filtered entries as CSV; the export itself is recorded in the trail."""
    rows, filters = _filtered(request)
    audit.record(request.user, "trail_exported", **{name: value for name, value in filters.items() if value})
    header = [_("Time"), _("User"), _("On behalf of"), _("Action"), _("Kind"), _("Object"), _("Details"), _("Address")]
    lines = (
        [
            localtime(entry.at).isoformat(timespec="seconds"),
            entry.actor,
            entry.behind,
            entry.verb,
            entry.target_kind,
            entry.target,
            "; ".join(f"{name}: {text}" for name, text in audit_facts.to_texts(entry.facts)),
            entry.address,
        ]
        for entry in rows.order_by("-pk")[:MAX_EXPORTED].iterator(2000)
    )
    return csv_answer("audit-trail.csv", header, lines)
