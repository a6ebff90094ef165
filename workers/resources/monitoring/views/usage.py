"""Who used how much: a page and the same as a spreadsheet."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import downloads
from aiplatform.lib.errors import Invalid
from aiplatform.lib.pages import needs
from workers.resources.monitoring import usage

GROUPINGS = [
    ("user", gettext_lazy("User")),
    ("group", gettext_lazy("Group")),
    ("cluster", gettext_lazy("Cluster")),
]


@require_GET
@needs(Action.JOBS_VIEW)
def show(request: SignedInRequest) -> HttpResponse:
    """Use of a span by person, group or cluster; people see their own, operators everybody's."""
    by, refusal, status = request.GET.get("by", "user"), "", 200
    try:
        begin, end = usage.span(request.GET.get("from", ""), request.GET.get("until", ""))
        report = usage.report(request.user, begin=begin, end=end, by=by)
    except Invalid as exc:
        refusal, status = exc.message, 422
        begin, end = usage.span("", "")
        by = "user"
        report = usage.report(request.user, begin=begin, end=end)
    if request.GET.get("format") == "csv" and not refusal:
        name = f"usage-{by}-{begin:%Y-%m-%d}-{timezone.localtime(end) - timedelta(days=1):%Y-%m-%d}.csv"
        return downloads.csv_answer(name, usage.HEADER, usage.table(report))
    query = request.GET.copy()
    query["format"] = "csv"
    cards = report.total.gpu_hours > 0  # a span of cores alone is told in cores
    before = None if report.rows else usage.first_start(request.user, until=end)
    context = {
        "report": report,
        "groupings": GROUPINGS,
        "first_ever": before if before and before < begin else None,
        "first": begin.date(),
        "last": end.date() - timedelta(days=1),
        "by": by,
        "refusal": refusal,
        "csv": f"?{query.urlencode()}",
        "cards": cards,
        "most": max((row.gpu_hours if cards else row.cpu_hours for row in report.rows), default=0) or 1,
    }
    template = "workers/_usage.html" if request.htmx else "workers/usage.html"
    return render(request, template, context, status=status)
