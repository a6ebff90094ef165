"""Global search: jobs, and commands of the palette on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import ids
from aiplatform.lib.palette import ObjectCommand, Target
from aiplatform.lib.search import Source, filter_by_text
from workers.core.kinds import KINDS
from workers.core.models import Job
from workers.core.states import FINAL
from workers.jobs import buttons

MAX_JOBS = 20  # newest matching jobs whose buttons are computed


def kinds_of_jobs() -> Iterator[Source]:
    """One source for each kind of job, with its label and icon, for those who may see that kind."""
    for kind in KINDS:
        yield Source(kind.name, kind.label, kind.icon, kind.view_action, kind.find)


def allowing(verb: str) -> Callable[[User, str, int], Iterator[Target]]:
    """Return a function that yields the jobs, by name or number, whose button `verb` the user may press now."""

    def find(user: User, text: str, limit: int) -> Iterator[Target]:
        jobs = Job.objects.editable_by(user).exclude(state__in=FINAL)
        numbered = Q(pk=number) if (number := ids.number(text.removeprefix("#"))) else Q(pk__in=())
        matching = jobs.filter(numbered | Q(pk__in=filter_by_text(jobs, text, "name").values("pk")))
        left = limit
        for job in matching.order_by("-pk")[:MAX_JOBS]:
            button = next(button for button in buttons.list_buttons(job) if button.verb == verb)
            if left and button.allowed:
                left -= 1
                url = reverse("workers:job-action", args=[job.pk, verb])
                yield Target(f"{job.pk} · {job.name}", url, fields={}, question=button.asks)

    return find


def _command(verb: str, label: Any) -> ObjectCommand:
    icon = buttons.LABELS[verb][1]
    return ObjectCommand(f"jobs.{verb}", label, icon, Action.JOBS_CONTROL, find=allowing(verb))


JOB_COMMANDS = (
    _command("stop", _("Stop job %(name)s")),
    _command("pause", _("Pause job %(name)s")),
    _command("continue", _("Continue job %(name)s")),
    _command("finish", _("Finish job %(name)s early")),
)
