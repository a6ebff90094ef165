"""The expert page: every field of a request in one form, and the same request as text beside it.

The text is what is submitted. A change of the form writes the text anew; a change of the text fills the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import needs
from training.job_templates import services
from training.job_templates.models import JobTemplate
from training.programs import request_schemas, request_secrets, request_text
from training.programs.request_schemas import RequestSchema
from workers.core.models import Job
from workers.scheduling import preview

#: Fields of all kinds by the block they stand in, in their order; whatever else a kind has says what runs.
DATA = ("version", "eval_version", "datasets")
WHERE = (
    "task_type", "device", "gpus_per_node", "share", "cpus", "memory_gib", "max_disk_gib", "cluster", "nodes",
    "launcher", "processes", "worker_command", "priority", "urgent", "preemptible", "root_inside", "max_runtime_min",
)  # fmt: skip
#: What an empty text shows, by kind.
EXAMPLES = {
    "command": "command: python train.py --epochs 10\ncpus: 4\ngpus_per_node: 1\n",
    "training": "preset: detect\nversion: 1\nparams:\n  budget_minutes: 30\n  lr: 0.001\n",
    "environment": "name: notebook\ncpus: 4\ngpus_per_node: 1\n",
}
FOLLOWING = ("array", "after", "after_end", "outputs_of", "retries", "retry_pause_s")


@dataclass(frozen=True)
class Note:
    """What is wrong with a text: on which line, of which field, and why; 0 is no line."""

    line: int
    field: str
    sentence: str


@dataclass(frozen=True)
class Reading:
    """A text as it was read: its request, what is wrong with it, and what the scheduler would say to it."""

    request: dict[str, Any]
    notes: list[Note]
    verdict: preview.Verdict | None = None
    is_unreadable: bool = False  # no YAML: the form keeps what it shows


@dataclass(frozen=True)
class Row:
    """A field as it is shown."""

    field: forms.BoundField
    unit: str


@dataclass(frozen=True)
class Block:
    """Fields of the form under one title."""

    title: str
    rows: list[Row]


@require_http_methods(["GET", "POST"])
@needs(Action.JOBS_SUBMIT)
def show(request: SignedInRequest) -> HttpResponse:
    """GET may begin from `?job=` or `?template=`; POST submits the text or, by `act`, carries one side over."""
    schema = _schema(request)
    if request.method == "GET":
        text = request_text.written(_beginning(request, schema))
        return _page(request, schema, text, read(request.user, schema, text) if text else None)
    if request.POST.get("act") == "text":
        text = request_text.written(schema.of_form(_read_form(request, schema)))
        return _page(request, schema, text, read(request.user, schema, text))
    text = request.POST.get("text", "")
    reading = read(request.user, schema, text)
    if not reading.notes and request.POST.get("act") != "form":
        try:
            job = request_schemas.submit(schema, request.user, reading.request)
        except DomainError as exc:
            reading = Reading(reading.request, _notes(exc, text))
        else:
            messages.success(
                request, _("%(name)s is queued. The complete request is shown under Spec.") % {"name": job.name}
            )
            return redirect("workers:array", job.array_id) if job.array_id else redirect("workers:job", job.pk)
    return _page(request, schema, text, reading, status=422 if reading.notes else 200)


@require_POST
@needs(Action.JOBS_SUBMIT)
def to_text(request: SignedInRequest) -> HttpResponse:
    """Return the YAML text of the form, which may be incomplete."""
    schema = _schema(request)
    text = request_text.written(schema.of_form(_read_form(request, schema)))
    context = {"text": text, "reading": read(request.user, schema, text), "example": EXAMPLES.get(schema.kind, "")}
    return render(request, "job_templates/_expert_text.html", context)


@require_POST
@needs(Action.JOBS_SUBMIT)
def to_form(request: SignedInRequest) -> HttpResponse:
    """The form filled with what the text says, and what is wrong with the text."""
    schema, text = _schema(request), request.POST.get("text", "")
    reading = read(request.user, schema, text)
    form = _form(request, schema, reading.request)
    context = {"form": form, "blocks": blocks(form), "reading": reading, "apart": True}
    response = render(request, "job_templates/_expert_form.html", context)
    if reading.is_unreadable:
        response["HX-Reswap"] = "none"
    return response


def read(user: User, schema: RequestSchema, text: str) -> Reading:
    """Read a text and judge it as its submission would."""
    try:
        request = request_text.read(text)
    except DomainError as exc:
        line, why = exc.facts.get("line", 0), exc.facts.get("why")
        sentence = _("Invalid YAML: %(why)s.") % {"why": why} if why else exc.message
        return Reading({}, [Note(line if isinstance(line, int) else 0, "", sentence)], is_unreadable=True)
    try:
        resources = request_schemas.check(schema, user, request)
    except DomainError as exc:
        return Reading(request, _notes(exc, text))
    return Reading(request, [], preview.preview_request(user, resources, kind=schema.kind))


def _notes(exc: DomainError, text: str) -> list[Note]:
    lines = request_text.lines_of(text)
    notes = [Note(lines.get(error.blamed or "", 0), error.blamed or "", error.message) for error in exc.every]
    return sorted(notes, key=lambda note: note.line)


def _schema(request: SignedInRequest) -> RequestSchema:
    return request_schemas.get(request.POST.get("kind") or request.GET.get("kind") or "command")


def _beginning(request: SignedInRequest, schema: RequestSchema) -> dict[str, Any]:
    if number := ids.number(request.GET.get("template", "")):
        rows = JobTemplate.objects.visible_to(request.user).usable_by(request.user)
        template: JobTemplate = get_object_or_404(rows, pk=number, kind=schema.kind)
        return dict(services.content_of(template.newest).request)
    if number := ids.number(request.GET.get("job", "")):
        job: Job = get_object_or_404(Job.objects.visible_to(request.user), pk=number, kind=schema.kind)
        if not schema.has(job):  # the platform made it, without a request
            raise Http404
        return request_secrets.as_known_to(request.user, job, schema.of_job(job), lines=schema.command_lines)
    return {}


def _form(request: SignedInRequest, schema: RequestSchema, values: dict[str, Any]) -> forms.Form:
    form = schema.form(user=request.user, initial=schema.initial(request.user, values))
    return _without_files(form)


def _read_form(request: SignedInRequest, schema: RequestSchema) -> forms.Form:
    form = _without_files(schema.form(request.POST, user=request.user))
    form.is_valid()
    return form


def _without_files(form: forms.Form) -> forms.Form:
    """The form without fields for files, which no text can say: code comes as a snapshot or from the home folder."""
    for name in [name for name, field in form.fields.items() if isinstance(field, forms.FileField)]:
        del form.fields[name]
    if "home_path" in form.fields:  # elsewhere it stands beside the file
        form.fields["home_path"].label = _("Folder in your home")
    return form


def blocks(form: forms.Form) -> list[Block]:
    """Group the fields of a form as on its own page; fields of a block have the same order everywhere."""
    rows = {field.name: Row(field, _units().get(field.name, "")) for field in form.visible_fields()}
    apart = {name for names in (DATA, WHERE, FOLLOWING) for name in names}
    named = [
        (_("Program"), [name for name in rows if name not in apart]),
        (_("Dataset"), DATA),
        (_("Resources"), WHERE),
        (_("Dependencies, retries, array"), FOLLOWING),
    ]
    candidates = [Block(title, [rows[name] for name in names if name in rows]) for title, names in named]
    return [block for block in candidates if block.rows]


def _units() -> dict[str, str]:
    gib = dict.fromkeys(("memory_gib", "max_disk_gib"), "GiB")
    return {**gib, "max_runtime_min": _("min"), "retry_pause_s": "s", "idle_hours": "h"}


def _page(
    request: SignedInRequest, schema: RequestSchema, text: str, reading: Reading | None, *, status: int = 200
) -> HttpResponse:
    form = _form(request, schema, reading.request if reading else {})
    context = {
        "schema": schema,
        "schemas": request_schemas.offered_to(request.user),
        "text": text,
        "reading": reading,
        "form": form,
        "blocks": blocks(form),
        "example": EXAMPLES.get(schema.kind, ""),
    }
    return render(request, "job_templates/expert.html", context, status=status)
