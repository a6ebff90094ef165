"""Pages of templates: list, one, new, edit, use, delete."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import errors_shown_on
from aiplatform.objects import bulk
from aiplatform.objects.pages import FORM, ObjectPages, page
from aiplatform.objects.tables import Column, MainColumn, Table
from training.job_templates import parameters, services
from training.job_templates.filters import TemplateFilters
from training.job_templates.forms import TemplateForm, UseForm
from training.job_templates.models import JobTemplate, TemplateVersion
from training.job_templates.services import Content
from training.programs import request_schemas, request_text
from workers.core.models import Job


class TemplatePages(ObjectPages[JobTemplate]):
    """Pages of job templates: stored requests with parameters."""

    model, filters = JobTemplate, TemplateFilters
    namespace, path = "templates", "templates/"
    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    table = Table(
        MainColumn(_("Name"), "row.name", sort="name", below="row.description"),
        Column(_("Type"), "row.kind_label", sort="kind"),
        Column(_("Owner"), "row.owner.get_full_name", sort="owner"),
        Column(_("Visible to"), "row.get_visibility_display"),
        Column(_("Version"), "row.newest_number", kind="num"),
        Column(_("Jobs created"), "row.uses|count", kind="num"),
        Column(_("Changed"), "row.updated_at|ago", sort="changed", kind="time"),
        Column(_("Actions"), template="job_templates/_use_button.html", kind="actions"),
        anchor="template",
        bulk=(
            bulk.delete(
                "/api/v1/templates/0/", _("Jobs that were created from them are kept."), needs=Action.JOBS_SUBMIT
            ),
        ),
    )
    region, art, layout = "templates", "bookmark", "wide"
    title, lead = _("Templates"), _("Saved job requests, to be reused by you and others.")
    filter_label, no_match_text = _("Filter templates"), _("No template matches this filter.")
    empty_text, new_title = (
        _("No templates yet. Save a job as a template on its page, or write one."),
        _("New template"),
    )
    deleted_text = _("Template %(name)s deleted.")
    list_template, detail_template = "job_templates/list.html", "job_templates/detail.html"
    form_template = "job_templates/edit.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for row in rows:
            row.kind_label = request_schemas.get(row.kind).label
        return {}

    def details(self, request: SignedInRequest, row: JobTemplate, is_own: bool) -> dict[str, Any]:
        """The newest version, or the one of `?version=`."""
        versions = list(row.versions.select_related("made_by", "code"))
        number = ids.number(request.GET.get("version", ""))
        version = next((candidate for candidate in versions if candidate.number == number), versions[0])
        is_usable = self.rows(request, "usable_by").filter(pk=row.pk).exists()
        return {
            "template": row,
            "versions": versions,
            "version": version,
            "text": request_text.written(services.content_of(version).request),
            "kind_label": request_schemas.get(row.kind).label,
            "may_use": is_usable and request.user.can(Action.JOBS_SUBMIT),
        }

    def new_page(self, request: SignedInRequest, **kwargs: Any) -> HttpResponse:
        """A new template; GET may begin from `?job=`, POST from a kind's form or a text, as `begin` says."""
        if request.method == "POST" and "begin" not in request.POST:
            return super().new_page(request)
        schema, content = _beginning(request)
        form = TemplateForm(initial=_written(content) | {"name": content.request.get("name", "")})
        form.kind = schema.kind
        return self.render_form(request, form)

    def form(self, request: SignedInRequest, row: JobTemplate | None = None) -> TemplateForm:
        if row is None:
            form = TemplateForm(request.POST)
        else:
            initial = {name: getattr(row, name) for name in ("name", "description", "visibility")}
            form = TemplateForm(request.POST or None, initial=initial | _written(services.content_of(row.newest)))
        form.kind = row.kind if row else request.POST.get("kind", "command")
        return form

    def form_context(self, request: SignedInRequest, form: TemplateForm, row: JobTemplate | None) -> dict[str, Any]:
        return {"kind": form.kind, "template": row}

    def create(self, request: SignedInRequest, form: TemplateForm) -> JobTemplate:
        return services.create(user=request.user, kind=form.kind, **form.values())

    def change(self, request: SignedInRequest, form: TemplateForm, row: JobTemplate) -> None:
        services.change(row, user=request.user, **form.values())

    def remove(self, request: SignedInRequest, row: JobTemplate) -> None:
        services.delete(row)

    @page(methods=FORM, rows="usable_by")
    def use(self, request: SignedInRequest, row: JobTemplate) -> HttpResponse:
        """Ask for the parameters of a template and queue its job; `?version=` takes an older one."""
        number = ids.number(request.GET.get("version", ""))
        version: TemplateVersion = get_object_or_404(row.versions, number=number) if number else row.newest
        schema = request_schemas.get(row.kind)
        secret = frozenset(parameters.names_in(version.request.get(schema.secrets) or {}))
        form = UseForm(request.POST if request.method == "POST" else None, version=version, secrets=secret)
        if form.is_bound and form.is_valid():
            with errors_shown_on(form):
                job = services.use(version, user=request.user, values=form.values(), instead=form.instead())
                return redirect("workers:array", job.array_id) if job.array_id else redirect("workers:job", job.pk)
        context = {"template": row, "version": version, "form": form, "text": request_text.written(version.request)}
        return self.render(request, "job_templates/use.html", context, 422 if form.errors else 200)


def _written(content: Content) -> dict[str, str]:
    """A content as the fields of the form have it."""
    return {"text": request_text.written(content.request), "parameters": parameters.written(content.parameters)}


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
