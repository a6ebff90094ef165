"""Pages of templates: list, one, new, edit, use, delete."""

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
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import errors_shown_on, is_name_confirmed, needs
from training.job_templates import parameters, services
from training.job_templates.forms import TemplateForm, UseForm
from training.job_templates.models import JobTemplate, TemplateVersion
from training.job_templates.orders import ORDERING
from training.job_templates.services import Content
from training.programs import request_schemas, request_text
from workers.core.models import Job


@require_safe
@needs(Action.JOBS_VIEW)
def index(request: SignedInRequest) -> HttpResponse:
    """Templates this person may see; `?q=`, `?mine=1`, `?ordering=`. htmx gets the table alone."""
    rows = JobTemplate.objects.visible_to(request.user).named_like(request.GET.get("q", "")[:100])
    if request.GET.get("mine") == "1":
        rows = rows.filter(owner=request.user)
    page = ORDERING.page(request, rows.for_list())
    for row in page.rows:
        row.kind_label = request_schemas.get(row.kind).label
    return render(request, "job_templates/_table.html" if request.htmx else "job_templates/list.html", {"page": page})


@require_safe
@needs(Action.JOBS_VIEW)
def detail(request: SignedInRequest, pk: int) -> HttpResponse:
    """A template with its newest version, or the one of `?version=`."""
    template = _visible(request, pk)
    versions = list(template.versions.select_related("made_by", "code"))
    number = ids.number(request.GET.get("version", ""))
    version = next((one for one in versions if one.number == number), versions[0])
    context = {
        "template": template,
        "versions": versions,
        "version": version,
        "text": request_text.written(services.content_of(version).request),
        "kind_label": request_schemas.get(template.kind).label,
        "may_use": _usable(request, template),
        "may_change": _changeable(request, template),
    }
    return render(request, "job_templates/detail.html", context)


@require_http_methods(["GET", "POST"])
@needs(Action.JOBS_SUBMIT)
def new(request: SignedInRequest) -> HttpResponse:
    """A new template; GET may begin from `?job=`, POST from a kind's form or a text, as `begin` says."""
    if request.method == "GET" or "begin" in request.POST:
        schema, content = _beginning(request)
        begun = {"text": request_text.written(content.request), "parameters": parameters.written(content.parameters)}
        form = TemplateForm(initial=begun | {"name": content.request.get("name", "")})
        return _shown(request, form, schema.kind)
    form = TemplateForm(request.POST)
    kind = request.POST.get("kind", "command")
    if form.is_valid():
        with errors_shown_on(form):
            template = services.create(user=request.user, kind=kind, **form.values())
            return redirect("templates:detail", template.pk)
    return _shown(request, form, kind)


@require_http_methods(["GET", "POST"])
@needs(Action.JOBS_SUBMIT)
def edit(request: SignedInRequest, pk: int) -> HttpResponse:
    """Change a template; what it requests becomes a new version."""
    rows = JobTemplate.objects.visible_to(request.user).editable_by(request.user)
    template: JobTemplate = get_object_or_404(rows, pk=pk)
    content = services.content_of(template.newest)
    initial = {name: getattr(template, name) for name in ("name", "description", "visibility")}
    initial |= {"text": request_text.written(content.request), "parameters": parameters.written(content.parameters)}
    form = TemplateForm(request.POST or None, initial=initial)
    if form.is_valid():
        with errors_shown_on(form):
            services.change(template, user=request.user, **form.values())
            return redirect("templates:detail", pk)
    return _shown(request, form, template.kind, template)


@require_http_methods(["GET", "POST"])
@needs(Action.JOBS_SUBMIT)
def use(request: SignedInRequest, pk: int) -> HttpResponse:
    """Ask for the parameters of a template and queue its job; `?version=` takes an older one."""
    rows = JobTemplate.objects.visible_to(request.user).usable_by(request.user)
    template: JobTemplate = get_object_or_404(rows, pk=pk)
    number = ids.number(request.GET.get("version", ""))
    version: TemplateVersion = get_object_or_404(template.versions, number=number) if number else template.newest
    schema = request_schemas.get(template.kind)
    secret = frozenset(parameters.names_in(version.request.get(schema.secrets) or {}))
    form = UseForm(request.POST if request.method == "POST" else None, version=version, secrets=secret)
    if form.is_bound and form.is_valid():
        with errors_shown_on(form):
            job = services.use(version, user=request.user, values=form.values(), instead=form.instead())
            return redirect("workers:array", job.array_id) if job.array_id else redirect("workers:job", job.pk)
    context = {
        "template": template,
        "version": version,
        "form": form,
        "text": request_text.written(version.request),
    }
    return render(request, "job_templates/use.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.JOBS_SUBMIT)
def delete(request: SignedInRequest, pk: int) -> HttpResponse:
    """Delete a template, once its name was typed."""
    rows = JobTemplate.objects.visible_to(request.user).editable_by(request.user)
    template: JobTemplate = get_object_or_404(rows, pk=pk)
    if not is_name_confirmed(request, template.name):
        return redirect("templates:detail", pk)
    services.delete(template)
    messages.info(request, _("Template %(name)s is deleted.") % {"name": template.name})
    return redirect("templates:list")


def _visible(request: SignedInRequest, pk: int) -> JobTemplate:
    found: JobTemplate = get_object_or_404(JobTemplate.objects.visible_to(request.user).select_related("owner"), pk=pk)
    return found


def _usable(request: SignedInRequest, template: JobTemplate) -> bool:
    may = request.user.can(Action.JOBS_SUBMIT)
    return may and JobTemplate.objects.usable_by(request.user).filter(pk=template.pk).exists()


def _changeable(request: SignedInRequest, template: JobTemplate) -> bool:
    may = request.user.can(Action.JOBS_SUBMIT)
    return may and JobTemplate.objects.editable_by(request.user).filter(pk=template.pk).exists()


def _beginning(request: SignedInRequest) -> tuple[request_schemas.RequestSchema, Content]:
    """The kind and the content that a new template begins with."""
    number = ids.number(request.GET.get("job", ""))
    if number:
        job: Job = get_object_or_404(Job.objects.visible_to(request.user), pk=number)
        return request_schemas.get(job.kind), services.from_job(job, user=request.user)
    schema = request_schemas.get(request.POST.get("kind") or request.GET.get("kind", "command"))
    if request.POST.get("begin") == "text":
        try:
            return schema, Content(request=request_text.read(request.POST.get("text", "")))
        except DomainError as exc:
            messages.error(request, exc.message)
    elif request.POST.get("begin") == "form":
        return schema, _of_form(request, schema)
    return schema, Content(request={})


def _of_form(request: SignedInRequest, schema: request_schemas.RequestSchema) -> Content:
    """What the form of a kind says, with its code as a snapshot; the secrets' values stay behind."""
    form: Any = schema.form(request.POST, request.FILES, user=request.user)
    with errors_shown_on(form):
        form.take_code()
    return services.without_secrets(schema, schema.of_form(form))


def _shown(
    request: SignedInRequest, form: TemplateForm, kind: str, template: JobTemplate | None = None
) -> HttpResponse:
    context = {"form": form, "kind": kind, "template": template}
    return render(request, "job_templates/edit.html", context, status=422 if form.errors else 200)
