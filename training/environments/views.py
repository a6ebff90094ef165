"""Pages of workspaces: the list, the form of a new one, and actions of its panel on the queue's own job page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.errors import DomainError
from aiplatform.lib.ordering import ListPage
from aiplatform.objects import bulk
from aiplatform.objects.pages import POST, page
from aiplatform.objects.tables import Column, Table
from training.environments import actions, lifecycle, panel
from training.environments.filters import EnvironmentFilters
from training.environments.models import Environment
from training.environments.request_schema import SCHEMA
from training.programs.pages import CREATED, GPUS, OWNER, STATE, ProgramPages
from workers.jobs import job_page


class EnvironmentPages(ProgramPages[Environment]):
    model, filters, request_schema = Environment, EnvironmentFilters, SCHEMA
    namespace, url_names = "environments", {"mark_needed": "keep"}
    needs = {"delete": Action.JOBS_CONTROL}
    table = Table(
        Column(_("Name"), template="environments/_name.html", sort="name", css="main-cell"),
        STATE,
        Column(pgettext_lazy("container", "Image"), "row.shown.image"),
        Column(_("Folder"), "~/{{ row.folder }}", css="mono small"),
        Column(_("Time left"), "row.shown.left|duration", kind="num", css="nowrap"),
        GPUS,
        OWNER,
        CREATED,
        Column(_("Actions"), template="environments/_acts.html", kind="actions"),
        anchor="environment",
        bulk=(
            bulk.stop(
                "/api/v1/jobs/0/stop/",
                _("Unsaved work in running programs is lost; files are kept."),
                needs=Action.JOBS_CONTROL,
            ),
        ),
        row_name="row.job.name",
        row_key="row.job_id",
    )
    region, art, title = "environments", "environments", _("Workspaces")
    lead = _("JupyterLab, VS Code and SSH on cluster nodes, with your home folder.")
    filter_label, no_match_text = _("Filter workspaces"), _("No workspace matches this filter.")
    empty_text = _("No workspaces yet. A workspace is JupyterLab on a node of your cluster, with your home folder.")
    new_title, save_label = _("New workspace"), pgettext_lazy("environment", "Start")
    form_lead = _("All settings have defaults.")
    form_template = "environments/new.html"
    confirms_name, deleted_text = False, _("%(name)s was deleted. Your home folder is kept.")

    def rows(self, request: SignedInRequest, which: str = "visible_to") -> Any:
        return super().rows(request, which).not_deleted()

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for row in rows:
            row.shown = panel.facts(row, request.user)
        return super().prepare(request, rows)

    def remove(self, request: SignedInRequest, row: Environment) -> None:
        actions.delete(row, by=request.user)

    @page()
    def state(self, request: SignedInRequest, row: Environment) -> HttpResponse:
        """The panel, polled while JupyterLab starts."""
        return _panel(request, lifecycle.see_ready(row))

    @page(Action.JOBS_CONTROL, methods=POST, rows="editable_by", path="<int:pk>/keep/")
    def mark_needed(self, request: SignedInRequest, row: Environment) -> HttpResponse:
        """Mark the workspace as still needed."""
        return self._done(
            request, row, lambda: actions.mark_needed(row, by=request.user), gettext("The workspace is kept running.")
        )

    @page(Action.JOBS_CONTROL, methods=POST, rows="editable_by")
    def extend(self, request: SignedInRequest, row: Environment) -> HttpResponse:
        """Two hours more, or a request for them."""
        return self._done(request, row, lambda: actions.extend(row, hours=actions.HOURS, by=request.user), "")

    def _done(self, request: SignedInRequest, row: Environment, act: Callable[[], Any], success: str) -> HttpResponse:
        try:
            granted = act()
        except DomainError as refusal:
            if request.htmx:
                raise
            messages.error(request, refusal.message)
            return redirect("workers:job", row.pk)
        if request.htmx:
            return _panel(request, self.row(request, row.pk, "editable_by"))
        pending = gettext("The cluster administrators were asked.")
        messages.info(request, success or (gettext("The time limit was extended.") if granted else pending))
        return redirect("workers:job", row.pk)


def _panel(request: SignedInRequest, environment: Environment) -> HttpResponse:
    shown = job_page.panels(environment.job, request.user, only="environment")
    return render(request, "workers/_panels.html", {"job": environment.job, "panels": shown})
