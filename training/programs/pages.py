"""Pages of the jobs of one kind that run a user's program: the list and the form; one job has the queue's own page."""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.ordering import ListPage
from aiplatform.lib.pages import errors_shown_on
from aiplatform.objects.pages import POST, ObjectPages, Row, page
from aiplatform.objects.tables import Column
from training.programs import starting_points
from training.programs.request_schemas import RequestSchema
from training.programs.requests import default_cpus
from workers.images import forms as image_forms
from workers.scheduling import preview

STATE = Column(_("State"), template="programs/_state.html")
GPUS = Column(_("GPUs"), template="programs/_gpus.html", sort="cards", kind="num", css="nowrap")
OWNER = Column(_("Owner"), "row.job.owner.get_full_name", sort="owner")
CREATED = Column(_("Created"), "row.job.created_at|ago", sort="created", kind="time")


class ProgramPages(ObjectPages[Row]):
    """A kind declares its request schema, texts, filters and table, and the blocks of its form's template."""

    request_schema: ClassVar[RequestSchema]
    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    layout, list_template = "wide", "programs/list.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        is_live = any(not row.job.is_final for row in rows)
        return {"refresh_s": request.user.refresh_s} if is_live else {}

    def form(self, request: SignedInRequest, row: Row | None = None) -> Any:
        """GET may begin from `?clone=`, or from `?version=`, `?image=` and `?outputs_of=`."""
        initial, pattern = self._beginning(request)
        form = self.request_schema.form(request.POST or None, request.FILES or None, user=request.user, initial=initial)
        form.pattern = pattern
        if form.is_bound:
            with errors_shown_on(form):
                form.take_code()
        return form

    def _beginning(self, request: SignedInRequest) -> tuple[dict[str, Any], Any]:
        """Return initial values of the form, and the program they come from."""
        query = request.GET
        if number := ids.number(query.get("clone", "")):
            rows: Any = self.model.objects.visible_to(request.user)  # type: ignore[attr-defined]  # our querysets
            pattern = get_object_or_404(rows.for_list(), pk=number)
            return self.request_schema.initial_of_clone(request.user, pattern), pattern
        initial: dict[str, Any] = {"gpus_per_node": 0, "cpus": default_cpus()}
        named = {name: number for name in ("image", "outputs_of") if (number := ids.number(query.get(name, "")))}
        version = ids.number(query.get("version", ""))
        return initial | named | ({"datasets": [version]} if version else {}), None

    def form_context(self, request: SignedInRequest, form: Any, row: Row | None) -> dict[str, Any]:
        return {"starts": starting_points.groups(request.user, self.request_schema.kind, request.path)}

    def service_check(self, request: SignedInRequest, row: Row | None) -> Any:
        return self.request_schema.check_parts

    def create(self, request: SignedInRequest, form: Any) -> Any:
        program_request = self.request_schema.request(**form.request_fields())
        return self.request_schema.service.submit(user=request.user, request=program_request)

    def to_detail(self, row: Any) -> HttpResponse:
        job = row.job
        return redirect("workers:array", job.array_id) if job.array_id else redirect("workers:job", job.pk)

    @page(Action.JOBS_SUBMIT, methods=POST, path="fit/", rows="")
    def fit(self, request: SignedInRequest) -> HttpResponse:
        """Whether the request fits now, waits, or never fits; the form may be incomplete."""
        schema = self.request_schema
        return render_fit(request, schema.form(request.POST, user=request.user), schema.kind)


def render_fit(request: SignedInRequest, form: Any, kind: str) -> HttpResponse:
    """Render the panel with the scheduler's answer to a form, which may be incomplete."""
    form.is_valid()
    verdict = preview.preview_request(request.user, image_forms.resources_of(form), kind=kind, unclear=form.unclear())
    nodes, cards = form.total_devices()
    context = {
        "verdict": verdict,
        "requested": form.summary,
        "image_fit": image_forms.fit_words(form),
        "nodes": nodes,
        "cards": cards,
    }
    return render(request, "workers/_fit.html", context)
