"""Pages of reports: the list, one, writing it, its versions, its file, and the end of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.downloads import attachment
from aiplatform.lib.pages import errors_as_messages
from aiplatform.objects import bulk
from aiplatform.objects.pages import POST, ObjectPages, action, page
from aiplatform.objects.tables import Column, MainColumn, Table
from training.experiments import code, comparison
from training.experiments.reports import documents, exporting, initial_panels, presentation, writing
from training.experiments.reports.filters import ReportFilters
from training.experiments.reports.forms import ReportForm
from training.experiments.reports.models import Report

MAX_DIFFERING = 1500  # lines of a difference that are shown


class ReportPages(ObjectPages[Report]):
    """Pages of reports: reading, writing, versions and the file."""

    model, filters = Report, ReportFilters
    namespace, object_rows = "reports", "with_text"
    view_permission = change_permission = Action.TRAINING_VIEW
    table = Table(
        MainColumn(_("Title"), "row.title", sort="title"),
        Column(_("Owner"), "row.owner.get_full_name", sort="owner"),
        Column(_("Visible to"), "row.get_visibility_display"),
        Column(_("Version"), "row.version", kind="num"),
        Column(_("Changed"), "row.updated_at|ago", sort="changed", kind="time"),
        anchor="report",
        bulk=(bulk.delete("/api/v1/reports/0/", _("All versions are deleted; the runs are kept.")),),
        row_name="row.title",
    )
    region, art, layout = "reports", "file-text", "wide"
    title, lead = _("Reports"), _("Texts with live tables, charts and metrics of runs, to read, share and print.")
    filter_label, no_match_text = _("Filter reports"), _("No report matches this filter.")
    empty_text = _("No reports yet. Document the results of your runs with live tables and charts.")
    new_title, deleted_text = _("New report"), _("The report %(name)s was deleted.")
    form_template, detail_template = "reports/edit.html", "reports/detail.html"

    def details(self, request: SignedInRequest, row: Report, is_own: bool) -> dict[str, Any]:
        """What the reader may see of its panels; `?panel=` begins with that one where not all were drawn in time."""
        first = ids.number(request.GET.get("panel", "")) or 1
        return {"report": row, "shown": presentation.show(row.text, request.user, row.author, first=first)}

    def form(self, request: SignedInRequest, row: Report | None = None) -> ReportForm:
        """GET may begin a new one with `?run=` and `?key=`, or with `?filter=`, `?column=` and `?sort=`."""
        if request.method == "POST":
            return ReportForm(request.POST)
        if row is None:
            return ReportForm(initial={"text": _initial_text(request)})
        return ReportForm(initial={name: getattr(row, name) for name in ("title", "visibility", "text")})

    def form_context(self, request: SignedInRequest, form: ReportForm, row: Report | None) -> dict[str, Any]:
        """With what the text changes, where another user saved the report meanwhile."""
        newest = self.row(request, row.pk) if row else None
        context: dict[str, Any] = {"report": newest, "snippets": initial_panels.snippets(request.user)}
        if newest is not None and "version" in request.POST and request.POST["version"] != str(newest.version):
            context["meanwhile"] = code.lines(newest.text, _sent_text(request))[:MAX_DIFFERING]
        return context

    def service_check(self, request: SignedInRequest, row: Report | None) -> Callable[..., object]:
        return partial(writing.check, user=request.user)

    def create(self, request: SignedInRequest, form: ReportForm) -> Report:
        return writing.create(user=request.user, **form.values())

    def change(self, request: SignedInRequest, form: ReportForm, row: Report) -> None:
        version = ids.number(request.POST.get("version", "")) or 0
        writing.save(row, user=request.user, version=version, **form.values())

    def remove(self, request: SignedInRequest, row: Report) -> None:
        row.delete()

    @page(path="preview/", methods=POST, rows="")
    def preview(self, request: SignedInRequest) -> HttpResponse:
        """The text of a form as its writer would see it, and everything that is wrong with it. Scripts get it alone."""
        shown = presentation.show(_sent_text(request), request.user, request.user, on_page=False)
        return self.render(
            request, "reports/_preview.html" if request.htmx else "reports/preview.html", {"shown": shown}
        )

    @page()
    def versions(self, request: SignedInRequest, row: Report) -> HttpResponse:
        """`?version=` shows one, with what it changes of `?against=`, else of the one before."""
        number = ids.number(request.GET.get("version", "")) or row.version
        version = writing.version_of(row, number)
        against = ids.number(request.GET.get("against", "")) or number - 1
        other = writing.version_of(row, against) if against else None
        lines = code.lines(other.text if other else "", version.text)
        context = {
            "report": row,
            "rows": row.versions.defer("text").select_related("made_by")[:500],
            "one": version,
            "other": other,
            "lines": lines[:MAX_DIFFERING],
            "cut": len(lines) > MAX_DIFFERING,
            "may_change": self.rows(request, "editable_by").filter(pk=row.pk).exists(),
        }
        return self.render(request, "reports/versions.html", context)

    @action()
    def restore(self, request: SignedInRequest, row: Report) -> HttpResponse:
        """Make an older version the newest again."""
        number, version = (ids.number(request.POST.get(name, "")) or 0 for name in ("number", "version"))
        with errors_as_messages(request):
            writing.restore(row, user=request.user, number=number, version=version)
            messages.info(request, gettext("Version %(number)s is the current version again.") % {"number": number})
            return self.to_detail(row)
        return redirect(self.names.versions, row.pk)

    @page()
    def export(self, request: SignedInRequest, row: Report) -> HttpResponse:
        """The report as one file of HTML that needs nothing else."""
        response = HttpResponse(exporting.html(row, request.user), content_type="text/html; charset=utf-8")
        response["Content-Disposition"] = attachment(exporting.file_name(row))
        return response


def _sent_text(request: SignedInRequest) -> str:
    return request.POST.get("text", "").replace("\r\n", "\n")[: documents.LONGEST_BYTES]


def _initial_text(request: SignedInRequest) -> str:
    """Return the initial text for the parameters of the address."""
    query = request.GET
    numbers = [number for text in query.getlist("run")[: comparison.MAX_RUNS] if (number := ids.number(text))]
    if numbers:
        return initial_panels.of_runs(numbers, query.getlist("key")[: comparison.MAX_KEYS])
    if any(name in query for name in ("filter", "column", "sort")):
        return initial_panels.of_table(query.get("filter", ""), query.getlist("column"), query.get("sort", ""))
    return ""
