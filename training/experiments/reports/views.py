"""Pages of reports: the list, one, writing it, its versions, its file, and the end of it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.downloads import attachment
from aiplatform.lib.pages import check_valid_fields, errors_as_messages, errors_shown_on, is_name_confirmed, needs
from training.experiments import code, comparison
from training.experiments.reports import documents, exporting, initial_panels, presentation, writing
from training.experiments.reports.forms import ReportForm
from training.experiments.reports.models import Report
from training.experiments.reports.orders import ORDERING

MOST_DIFFERING = 1500  # lines of a difference that are shown


@require_safe
@needs(Action.TRAINING_VIEW)
def index(request: SignedInRequest) -> HttpResponse:
    """Reports this person may see; `?q=`, `?mine=1`, `?ordering=`. htmx gets the table alone."""
    rows = Report.objects.visible_to(request.user).titled_like(request.GET.get("q", "")[:100])
    if request.GET.get("mine") == "1":
        rows = rows.filter(owner=request.user)
    page = ORDERING.page(request, rows.for_list())
    return render(request, "reports/_table.html" if request.htmx else "reports/list.html", {"page": page})


@require_safe
@needs(Action.TRAINING_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """One report, drawn for who reads it; `?panel=` begins with that panel where not all were drawn in time."""
    report = _visible(request, pk)
    first = ids.number(request.GET.get("panel", "")) or 1
    context = {
        "report": report,
        "shown": presentation.show(report.text, request.user, report.author, first=first),
        "may_change": _changeable(request).filter(pk=pk).exists(),
    }
    return render(request, "reports/detail.html", context)


@require_http_methods(["GET", "POST"])
@needs(Action.TRAINING_VIEW)
def new(request: SignedInRequest) -> HttpResponse:
    """A new report; GET may begin it with `?run=` and `?key=`, or with `?filter=`, `?column=` and `?sort=`."""
    if request.method == "GET":
        return _writing(request, ReportForm(initial={"text": _begun(request)}))
    form = ReportForm(request.POST)
    if form.is_valid():
        with errors_shown_on(form):
            report = writing.create(user=request.user, **form.values())
            return redirect("reports:detail", report.pk)
    check_valid_fields(form, writing.check, user=request.user)
    return _writing(request, form)


@require_http_methods(["GET", "POST"])
@needs(Action.TRAINING_VIEW)
def edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change a report. Where somebody else saved meanwhile, what was typed stays, beside what differs."""
    report: Report = get_object_or_404(_changeable(request), pk=pk)
    if request.method == "GET":
        initial = {name: getattr(report, name) for name in ("title", "visibility", "text")}
        return _writing(request, ReportForm(initial=initial), report)
    form = ReportForm(request.POST)
    version = ids.number(request.POST.get("version", "")) or 0
    if form.is_valid():
        with errors_shown_on(form):
            writing.save(report, user=request.user, version=version, **form.values())
            return redirect("reports:detail", pk)
    check_valid_fields(form, writing.check, user=request.user)
    return _writing(request, form, report)


@require_POST
@needs(Action.TRAINING_VIEW)
def preview(request: SignedInRequest) -> HttpResponse:
    """The text of a form as its writer would see it, and everything that is wrong with it. Scripts get it alone."""
    text = request.POST.get("text", "").replace("\r\n", "\n")[: documents.LONGEST_BYTES]
    shown = presentation.show(text, request.user, request.user, on_page=False)
    return render(request, "reports/_preview.html" if request.htmx else "reports/preview.html", {"shown": shown})


@require_safe
@needs(Action.TRAINING_VIEW)
def versions(request: SignedInRequest, pk: int) -> HttpResponse:
    """Versions of a report; `?version=` shows one, with what it changes of `?against=`, else of the one before."""
    report = _visible(request, pk)
    number = ids.number(request.GET.get("version", "")) or report.version
    one = writing.version_of(report, number)
    against = ids.number(request.GET.get("against", "")) or number - 1
    other = writing.version_of(report, against) if against else None
    rows = code.lines(other.text if other else "", one.text)
    context = {
        "report": report,
        "rows": report.versions.defer("text").select_related("made_by")[:500],
        "one": one,
        "other": other,
        "lines": rows[:MOST_DIFFERING],
        "cut": len(rows) > MOST_DIFFERING,
        "may_change": _changeable(request).filter(pk=pk).exists(),
    }
    return render(request, "reports/versions.html", context)


@require_POST
@needs(Action.TRAINING_VIEW)
def restore(request: SignedInRequest, pk: int) -> HttpResponse:
    """Make an older version the newest again."""
    report: Report = get_object_or_404(_changeable(request), pk=pk)
    number, version = (ids.number(request.POST.get(name, "")) or 0 for name in ("number", "version"))
    with errors_as_messages(request):
        writing.restore(report, user=request.user, number=number, version=version)
        messages.info(request, _("Version %(number)s is the newest again.") % {"number": number})
        return redirect("reports:detail", pk)
    return redirect("reports:versions", pk)


@require_safe
@needs(Action.TRAINING_VIEW)
def export(request: SignedInRequest, pk: int) -> HttpResponse:
    """The report as one file of HTML that needs nothing else."""
    report = _visible(request, pk)
    answer = HttpResponse(exporting.html(report, request.user), content_type="text/html; charset=utf-8")
    answer["Content-Disposition"] = attachment(exporting.file_name(report))
    return answer


@require_POST
@needs(Action.TRAINING_VIEW)
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a report with all versions, once its title was typed."""
    report: Report = get_object_or_404(_changeable(request), pk=pk)
    if not is_name_confirmed(request, report.title):
        return redirect("reports:detail", pk)
    report.delete()
    messages.info(request, _("The report %(title)s is deleted.") % {"title": report.title})
    return redirect("reports:list")


def _visible(request: SignedInRequest, pk: int) -> Report:
    found: Report = get_object_or_404(Report.objects.visible_to(request.user).select_related("owner", "author"), pk=pk)
    return found


def _changeable(request: SignedInRequest) -> Any:
    return Report.objects.visible_to(request.user).editable_by(request.user)


def _writing(request: SignedInRequest, form: ReportForm, report: Report | None = None) -> HttpResponse:
    newest = report
    if report is not None:
        newest = Report.objects.visible_to(request.user).select_related("author").get(pk=report.pk)
    context: dict[str, Any] = {"form": form, "report": newest, "snippets": initial_panels.snippets()}
    if newest is not None and "version" in request.POST and request.POST["version"] != str(newest.version):
        typed = request.POST.get("text", "").replace("\r\n", "\n")[: documents.LONGEST_BYTES]
        context["meanwhile"] = code.lines(newest.text, typed)[:MOST_DIFFERING]
    return render(request, "reports/edit.html", context, status=422 if form.errors else 200)


def _begun(request: SignedInRequest) -> str:
    """The text that the address asks for."""
    given = request.GET
    numbers = [number for text in given.getlist("run")[: comparison.MOST_RUNS] if (number := ids.number(text))]
    if numbers:
        return initial_panels.of_runs(numbers, given.getlist("key")[: comparison.MOST_KEYS])
    if any(name in given for name in ("filter", "column", "sort")):
        return initial_panels.of_table(given.get("filter", ""), given.getlist("column"), given.get("sort", ""))
    return ""
