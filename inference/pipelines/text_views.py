"""Pages of a pipeline as text, and of what differs between its versions."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_as_messages, needs
from inference.pipelines import (
    checks,
    diffing,
    graph,
    kinds,
    pipeline_warnings,
    python_text,
    text,
    text_reading,
    writing,
)
from inference.pipelines.models import Pipeline, PipelineVersion

FORMS = ("yaml", "python")
MAX_WARNINGS = 5  # reported at once


@require_safe
@needs(Action.JOBS_VIEW)
def as_text(request: SignedInRequest, pk: int) -> HttpResponse:
    """A version as YAML or Python (`?as=`, `?version=`), to read, copy and download; YAML can be put in its place."""
    pipeline: Pipeline = get_object_or_404(Pipeline.objects.visible_to(request.user), pk=pk)
    version = _version(pipeline, request.GET.get("version", ""))
    form = request.GET.get("as", "yaml")
    if form not in FORMS:
        raise Http404
    written = text_of(pipeline, version, form)
    if request.GET.get("download"):
        ending = "py" if form == "python" else "yaml"
        answer = HttpResponse(written, content_type="text/plain; charset=utf-8")
        answer["Content-Disposition"] = f'attachment; filename="pipeline-{pipeline.pk}-v{version.number}.{ending}"'
        return answer
    may_edit = Pipeline.objects.editable_by(request.user).filter(pk=pk).exists()
    context = {
        "pipeline": pipeline, "tab": "text", "version": version, "shown": version, "form": form, "written": written,
        "may_edit": may_edit and request.user.can(Action.JOBS_SUBMIT),
    }  # fmt: skip
    return render(request, "pipelines/text.html", context)


def text_of(pipeline: Pipeline, version: PipelineVersion, form: str) -> str:
    """A version as text."""
    if form == "python":
        return python_text.to_python(version.spec, pipeline.name)
    return text.to_yaml(version.spec, pipeline.layout)


@require_POST
@needs(Action.JOBS_SUBMIT)
def put_text(request: SignedInRequest, pk: int) -> HttpResponse:
    """Save the pipeline described by a text as a version."""
    rows = Pipeline.objects.visible_to(request.user).editable_by(request.user)
    pipeline: Pipeline = get_object_or_404(rows, pk=pk)
    content = request.POST.get("text", "")[: text_reading.MAX_BYTES + 1]
    note = request.POST.get("note", "")[: writing.MAX_NOTE_LENGTH]
    wrong: list[str] = []
    may_save = False
    try:
        read = text.from_yaml(content)
        problems = checks.problems(graph.parse(read.spec), request.user, within=pipeline.pk)
        wrong, may_save = (
            [f"{problem.step}: {problem.message}" if problem.step else problem.message for problem in problems],
            True,
        )
        if not wrong or request.POST.get("anyway"):
            version = writing.save_version(pipeline, user=request.user, spec=read.spec, layout=read.layout, note=note)
            messages.info(request, _("Version %(number)s is saved.") % {"number": version.number})
            for problem in list(pipeline_warnings.list_warnings(graph.parse(version.spec)))[:MAX_WARNINGS]:
                messages.warning(request, f"{problem.step}: {problem.message}")
            return redirect("pipelines:detail", pk)
    except DomainError as exc:
        wrong = [problem.message for problem in exc.every]
    newest = writing.newest(pipeline)
    context = {
        "pipeline": pipeline, "tab": "text", "version": newest, "shown": newest, "form": "yaml", "written": content,
        "may_edit": True,
        "wrong": wrong, "note": note, "may_save": may_save,
    }  # fmt: skip
    return render(request, "pipelines/text.html", context, status=422)


@require_safe
@needs(Action.JOBS_VIEW)
def versions(request: SignedInRequest, pk: int) -> HttpResponse:
    """All versions, and what differs between two of them (`?a=`, `?b=`)."""
    pipeline: Pipeline = get_object_or_404(Pipeline.objects.visible_to(request.user), pk=pk)
    rows = list(pipeline.versions.select_related("created_by"))
    if not rows:
        raise Http404
    later = _version(pipeline, request.GET.get("b", ""))
    before = next((row for row in rows if row.number < later.number), rows[-1])
    earlier = _version(pipeline, request.GET.get("a", "") or str(before.number))
    context = {
        "pipeline": pipeline, "tab": "versions", "version": rows[0], "rows": rows, "a": earlier, "b": later,
        "changes": changes_of(earlier, later),
        **_drafting(request, pipeline),
    }  # fmt: skip
    return render(request, "pipelines/versions.html", context)


def _drafting(request: SignedInRequest, pipeline: Pipeline) -> dict[str, Any]:
    """What the forms need that make a version the draft: whether one may, which draft goes, whether to ask."""
    may = request.user.can(Action.JOBS_SUBMIT) and Pipeline.objects.editable_by(request.user).filter(pk=pipeline.pk)
    draft = writing.draft_of(pipeline, request.user)
    return {
        "may_edit": bool(may), "revision": draft.revision, "newest": draft.pipeline.versions.first(),
        "is_changed": writing.is_changed(draft),
    }  # fmt: skip


@require_safe
@needs(Action.JOBS_VIEW)
def version(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """Show one version, as it was saved."""
    pipeline: Pipeline = get_object_or_404(Pipeline.objects.visible_to(request.user), pk=pk)
    row = _version(pipeline, str(number))
    editor_data = {"spec": row.spec, "layout": pipeline.layout, "readOnly": True}
    context = {"pipeline": pipeline, "version": row, "given": editor_data, "catalogue": kinds.catalogue()}
    return render(request, "pipelines/version.html", context | _drafting(request, pipeline))


@require_POST
@needs(Action.JOBS_SUBMIT)
def version_draft(request: SignedInRequest, pk: int, number: int) -> HttpResponse:
    """Copy a version to the user's draft, if the draft is still the one that was shown (`revision`)."""
    rows = Pipeline.objects.visible_to(request.user).editable_by(request.user)
    pipeline: Pipeline = get_object_or_404(rows, pk=pk)
    row = _version(pipeline, str(number))
    word = request.POST.get("revision", "")
    revision = int(word) if word.isascii() and word.isdigit() and len(word) < 9 else -1
    with errors_as_messages(request):
        writing.keep_draft(pipeline, request.user, spec=row.spec, layout=pipeline.layout, revision=revision)
        message = _("You continue from version %(number)s. Save it to make it the newest.")
        messages.info(request, message % {"number": number})
        return redirect("pipelines:edit", pk)
    return redirect("pipelines:version", pk, number)


def changes_of(earlier: PipelineVersion, later: PipelineVersion) -> list[dict[str, Any]]:
    """Return the differences as sentences."""
    changes = diffing.diff(earlier.spec, later.spec)
    return [
        {"step": change.step, "what": change.what.value, "sentence": diffing.to_sentence(change)} for change in changes
    ]


def _version(pipeline: Pipeline, word: str) -> PipelineVersion:
    rows = pipeline.versions.order_by("-number")
    is_number = word.isascii() and word.isdigit() and len(word) < 9
    row = rows.filter(number=int(word)).first() if is_number else rows.first()
    if row is None:
        raise Http404
    return row
