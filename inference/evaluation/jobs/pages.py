"""Pages of jobs on a model version: list, form, preview of its start, detail, stop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.db.models.functions import Lower
from django.forms import BaseForm
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage, Ordering
from aiplatform.objects.filters import Choice, Mine, ObjectFilters
from aiplatform.objects.pages import POST, ObjectPages, Row, action, page
from aiplatform.objects.tables import Column, MainColumn
from inference.evaluation.jobs.forms import ModelJobForm
from inference.evaluation.jobs.submission import DEFAULT_CPUS
from inference.registry.models import ModelVersion
from workers.core.states import GROUP_LABELS, GROUPS, JobState
from workers.jobs import actions
from workers.jobs.resource_request import Resources
from workers.scheduling import preview

STATES = [(word, word) for word in (*GROUPS, *JobState.values)]
NAME = MainColumn(_("Name"), "row.job.name", sort="name")
STATE = Column(_("State"), template="inference/_job_state.html", css="nowrap")
MODEL = Column(_("Model"), "row.model_label", sort="model")
OWNER = Column(_("Owner"), "row.job.owner", sort="owner")
CREATED = Column(_("Created"), "row.job.created_at|ago", sort="created", kind="time")


def job_orders(**columns: Any) -> Ordering:
    """Orders of a list of jobs; `columns` are those of its kind."""
    common: dict[str, Any] = {"created": "pk", "name": Lower("job__name"), "model": Lower("model_label")}
    return Ordering("-created", **common, **columns, owner=Lower("job__owner__username"))


class ModelJobFilters(ObjectFilters):
    """`state` is a state of jobs or a group of states; the page offers the groups."""

    state = Choice(
        "job__state", STATES, shown=[("", _("All states")), *GROUP_LABELS.items()], label=_("State"),
        method=lambda rows, _name, word: rows.in_state(word),
    )  # fmt: skip
    mine = Mine("job__owner", of_all=True)


class ModelJobPages(ObjectPages[Row]):
    """The pages of the job kind `basename`; the list is read again while one of its jobs is not over.

    Attributes:
        submit: the service that queues a job.
        check: what it would refuse of valid fields, see `check_valid_fields`.
        prefilled: parameters of the form's address that fill in fields.
        stop_text: what becomes of a job that is stopped.
    """

    namespace, art = "inference", "evaluation"
    form_template, fit_template = "inference/new_job.html", "workers/_fit.html"
    form_class: ClassVar[type[ModelJobForm]]
    submit: ClassVar[Callable[..., Any]]
    check: ClassVar[Callable[..., object]]
    prefilled: ClassVar[tuple[str, ...]] = ("model_version", "version")
    stop_text: ClassVar[Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.url_names = {"detail": f"{cls.basename}-detail", **vars(cls).get("url_names", {})}

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        is_live = any(not row.job.is_final for row in rows)
        return {"refresh_s": request.user.refresh_s or 5} if is_live else {}

    def initial(self, request: SignedInRequest) -> dict[str, Any]:
        """Initial values of the form; `?model=` chooses the newest version in use of a model."""
        newest = ModelVersion.objects.visible_to(request.user).newest_of(request.GET.get("model", ""))
        named = {name: request.GET[name] for name in self.prefilled if name in request.GET}
        return {"model_version": newest} | named if newest else named

    def form(self, request: SignedInRequest, row: Row | None = None) -> BaseForm:
        initial = self.initial(request)
        return self.form_class(request.POST or None, request.FILES or None, user=request.user, initial=initial)

    def form_context(self, request: SignedInRequest, form: Any, row: Row | None) -> dict[str, Any]:
        return {"list_url": reverse(self.names.list), "fit_url": reverse(self.names.fit)}

    def service_check(self, request: SignedInRequest, row: Row | None) -> Callable[..., object] | None:
        return self.check

    def create(self, request: SignedInRequest, form: Any) -> Row:
        row: Row = self.submit(user=request.user, **form.submission())
        return row

    @page(methods=POST, path="fit/", rows="")
    def fit(self, request: SignedInRequest) -> HttpResponse:
        """The panel in the form: whether the job would start now. Incomplete forms are fine."""
        form = self.form_class(request.POST, user=request.user)
        form.is_valid()
        resources: Resources = {"cpus": DEFAULT_CPUS, **self.resources(form)}
        verdict = preview.preview_request(request.user, resources, kind=self.basename, unclear=form.unclear())
        return render(request, self.fit_template, {"verdict": verdict, **self.fit_context(request, form)})

    def resources(self, form: Any) -> Resources:
        """The resources that a form requests, complete or not."""
        resources: Resources = form.resources()
        return resources

    def fit_context(self, request: SignedInRequest, form: Any) -> dict[str, Any]:
        """What the panel shows besides the answer of the scheduler."""
        return {}

    def is_outdated(self, request: SignedInRequest, row: Any) -> bool:
        """Whether the page has to be loaded again, instead of its live part."""
        return bool(row.job.is_final)

    def detail_page(self, request: SignedInRequest, pk: int) -> HttpResponse:
        """One job; htmx polls its live part until the job is over."""
        row = self.row(request, pk)
        if request.htmx and self.is_outdated(request, row):
            return HttpResponse(headers={"HX-Refresh": "true"})
        return self.render_detail(request, row, template=self.live_template if request.htmx else "")

    @action()
    def stop(self, request: SignedInRequest, row: Any) -> None:
        """Request a stop."""
        actions.stop(row.job, by=request.user)
