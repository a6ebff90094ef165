"""What the lists of conversions, batch predictions and video analyses share: each row is the result of a job."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.http import SignedInRequest
from aiplatform.lib.ordering import ListPage
from aiplatform.objects.filters import Choice, Mine, ObjectFilters
from aiplatform.objects.pages import ObjectPages, Row
from aiplatform.objects.tables import Column, MainColumn
from inference.evaluation.metric_labels import GROUP_LABELS
from workers.core.states import GROUPS, JobState

STATES = [(word, word) for word in (*GROUPS, *JobState.values)]
NAME = MainColumn(_("Name"), "row.job.name", sort="name")
STATE = Column(_("State"), template="inference/_job_state.html", css="nowrap")
MODEL = Column(_("Model"), "row.model_label", sort="model")
OWNER = Column(_("Owner"), "row.job.owner", sort="owner")
CREATED = Column(_("Created"), "row.job.created_at|ago", sort="created", kind="time")


class JobRowFilters(ObjectFilters):
    """`state` is a state of jobs or a group of states; the page offers the groups."""

    state = Choice(
        "job__state", STATES, shown=[("", _("All states")), *GROUP_LABELS.items()], label=_("State"),
        method=lambda rows, _name, word: rows.in_state(word),
    )  # fmt: skip
    mine = Mine("job__owner", of_all=True)


class JobRowPages(ObjectPages[Row]):
    """A list that is read again while one of its jobs is not over."""

    namespace, art = "inference", "search"

    def prepare(self, request: SignedInRequest, rows: ListPage) -> dict[str, Any]:
        is_live = any(not row.job.is_final for row in rows)
        return {"refresh_s": request.user.refresh_s or 5} if is_live else {}
