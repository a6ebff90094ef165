"""Lists across pipelines: all runs, and all approvals that runs request."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage
from aiplatform.objects import bulk
from aiplatform.objects.pages import ObjectPages
from aiplatform.objects.tables import Column, Table
from inference.pipelines import approvals, run_presentation
from inference.pipelines.filters import ApprovalFilters, RunFilters
from inference.pipelines.models import PipelineRun, StepApproval, StepRun

RUN_LINK = '<a href="{% url "pipelines:run" row.pk %}">{{ row }}</a>'
REVIEW_LINK = (
    '{% if row.is_waiting %}<a class="btn btn-small" href="{% url "pipelines:run" row.step_run.run_id %}#run-asked">'
    '{% translate "Review" %}<span class="sr-only"> {{ row.question }}</span></a>{% endif %}'
)
STATE_CHIP = "{% state_chip row.chip row.state_word %}"
QUESTION_LINK = (
    '<a href="{% url "pipelines:run" row.step_run.run_id %}">{{ row.question }}</a>'
    f'<div class="narrow-only">{STATE_CHIP}{REVIEW_LINK}</div>'
)


class RunPages(ObjectPages[PipelineRun]):
    """The list of the runs of all pipelines; it is read again while one of them runs."""

    model, filters = PipelineRun, RunFilters
    namespace, basename, path = "pipelines", "runs", "runs/"
    view_permission = change_permission = Action.JOBS_VIEW
    table = Table(
        Column(_("Run"), RUN_LINK, sort="pipeline", css="main-cell"),
        Column(_("State"), template="pipelines/_run_state.html", sort="state"),
        Column(_("Started by"), "row.trigger_word"),
        Column(_("Version"), "row.version.number", kind="num"),
        Column(_("Owner"), "row.owner.get_full_name", sort="owner"),
        Column(_("Started"), "row.created_at|ago", sort="created", kind="time"),
        Column(_("Duration"), "row.elapsed|duration", kind="num", css="nowrap"),
        bulk=(
            bulk.BulkAction(
                "cancel",
                _("Cancel"),
                "stop",
                "/api/v1/pipeline-runs/0/cancel/",
                text=_("Running steps are stopped; results so far are kept."),
                when="not row.is_over",
                needs=Action.JOBS_CONTROL,
            ),
        ),
        row_name="row",
    )
    region, art, layout, title = "runs", "pipeline", "wide", _("Runs")
    lead = _("Runs of all pipelines, newest first.")
    filter_label, no_match_text = _("Filter runs"), _("No run matches this filter.")
    empty_text = _("No runs yet. A pipeline runs manually, by schedule or on events.")

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for row in rows:
            row.trigger_word, row.elapsed = run_presentation.trigger_word(row), run_presentation.took_s(row)
        alive = any(not row.is_over for row in rows)
        return {"refresh_s": request.user.refresh_s if alive else 0}


class ApprovalPages(ObjectPages[StepApproval]):
    """The list of approvals that runs of pipelines request from the reader, or requested from others."""

    model, filters = StepApproval, ApprovalFilters
    namespace, basename, path = "pipelines", "approvals", "approvals/"
    view_permission = change_permission = Action.JOBS_VIEW
    table = Table(
        Column(_("Question"), QUESTION_LINK, css="main-cell"),
        Column(_("State"), STATE_CHIP, css="wide-only"),
        Column(_("Run"), "row.step_run.run", sort="pipeline"),
        Column(_("Approvers"), "row.approvers"),
        Column(_("Approved"), "{{ row.approved }} / {{ row.needed }}", kind="num", css="nowrap"),
        Column(_("Expires"), "{% if row.expires_at %}{{ row.expires_at|ago }}{% else %}–{% endif %}", css="nowrap"),
        Column(_("Requested"), "row.step_run.started_at|ago", sort="created", kind="time"),
        Column(_("Actions"), REVIEW_LINK, kind="actions", css="actions wide-only"),
    )
    region, art, layout, title = "approvals", "check", "wide", _("Approvals")
    lead = _("Decisions that runs of pipelines wait for, or waited for.")
    filter_label, no_match_text = _("Filter approvals"), _("No approval matches this filter.")
    empty_text = _("No approvals yet. A pipeline with an approval step waits until users have decided.")

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        for row in rows:
            row.approvers = ", ".join(sorted(person.get_full_name() for person in row.people.all())) or "–"
            answers = row.answers.all()
            row.approved = sum(answer.answer == approvals.PASSED for answer in answers)
            row.chip, row.state_word = approvals.state(row)
            row.is_waiting = (
                row.step_run.state == StepRun.State.ASKING
                and request.user in row.people.all()
                and request.user.pk not in {answer.person_id for answer in answers}
            )
        return {}
