"""Filters and orders that the lists of all jobs with a user's program have, for pages and API."""

from __future__ import annotations

from django.db.models import F
from django.db.models.expressions import Combinable
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from aiplatform.objects.filters import Choice, Mine, ObjectFilters
from workers.core.states import GROUP_LABELS, GROUPS, JobState

#: Groups of states that a page offers.
STATES = [("", _("All states")), *GROUP_LABELS.items()]
ORDERS: dict[str, str | Combinable] = {
    "created": "pk",
    "name": Lower("job__name"),
    "cards": F("job__nodes") * F("job__gpus_per_node"),
    "owner": Lower("job__owner__username"),
}


class ProgramFilters(ObjectFilters):
    """`state` is a state of jobs or a group of states."""

    state = Choice(
        "job__state", [(word, word) for word in (*GROUPS, *JobState.values)], shown=STATES, label=_("State"),
        method=lambda rows, _name, word: rows.in_state(word),
    )  # fmt: skip
    mine = Mine("job__owner", of_all=True)
