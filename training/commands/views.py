"""Pages of custom jobs: the list, and the form of a new one. One custom job is shown by the queue's own job page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage
from aiplatform.objects import bulk
from aiplatform.objects.tables import Column, Table
from training.commands.filters import CommandFilters
from training.commands.models import Command
from training.commands.request_schema import SCHEMA
from training.programs import script
from training.programs.pages import CREATED, GPUS, OWNER, STATE, ProgramPages


class CommandPages(ProgramPages[Command]):
    model, filters, request_schema = Command, CommandFilters, SCHEMA
    namespace = "commands"
    table = Table(
        Column(_("Name"), template="commands/_name.html", sort="name", css="main-cell"),
        STATE,
        Column(_("Datasets"), template="commands/_datasets.html"),
        Column(_("Duration"), "row.job.span|duration", kind="num", css="nowrap"),
        GPUS,
        OWNER,
        Column(_("Cluster"), "row.job.cluster.name"),
        CREATED,
        Column(_("Actions"), template="commands/_clone.html", kind="actions"),
        anchor="command",
        bulk=(
            bulk.stop(
                "/api/v1/jobs/0/stop/",
                _("The programs are stopped; outputs so far are kept."),
                needs=Action.JOBS_CONTROL,
            ),
        ),
        row_name="row.job.name",
        row_key="row.job_id",
    )
    region, art, title = "commands", "code", _("Custom jobs")
    lead = _("Your scripts and programs, run on the nodes of your clusters.")
    filter_label, no_match_text = _("Filter custom jobs"), _("No custom job matches this filter.")
    empty_text = _(
        "No custom jobs yet. Upload a script, or send a folder from your terminal: aip run -- python train.py"
    )
    new_title, save_label = _("New custom job"), pgettext_lazy("command", "Run")
    form_lead = _("Only a command is required; all other settings have defaults.")
    form_template = "commands/new.html"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for row in rows:
            row.line = script.shown(row.script).partition("\n")[0]
        return super().prepare(request, rows)
