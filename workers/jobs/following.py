"""What a job follows, and how often it is tried: other jobs that come first, retries after a failure."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from workers.core import scheduler_wakeup
from workers.core.models import Dependency, Job
from workers.core.states import COMPLETED, FINAL, Event, IllegalMove, JobState, Reason
from workers.jobs import transitions

log = logging.getLogger(__name__)

MAX_JOBS = 100
MAX_RETRIES = 20
MAX_PAUSE_S = 86_400
FIELDS = ("after", "after_end", "outputs_of")
"""Those of `Following` that name jobs."""
ENDED_AT_ONCE = 200
"""How many jobs one pass ends because what they were to follow failed."""


@dataclass(frozen=True)
class Following:
    """What a job waits for in addition to devices, and what happens where it fails.

    Args:
        after: numbers of the owner's jobs that have to complete first.
        after_end: numbers of the owner's jobs that have to end first, however.
        outputs_of: numbers of the owner's jobs whose outputs it reads; they have to complete first, unless their end
            is enough.
        retries: how often it is started again where its program fails.
        retry_pause_s: seconds before the first retry; each later pause is twice as long, up to a day.
    """

    after: Sequence[int] = ()
    after_end: Sequence[int] = ()
    outputs_of: Sequence[int] = ()
    retries: int = 0
    retry_pause_s: int = 30

    def needs(self) -> dict[int, str]:
        """What is needed of each job, by number; to complete counts where both are requested."""
        read = dict.fromkeys(self.outputs_of, Dependency.Needs.SUCCESS)
        ended = dict.fromkeys(self.after_end, Dependency.Needs.END)
        return {**read, **ended, **dict.fromkeys(self.after, Dependency.Needs.SUCCESS)}


NOTHING = Following()


def like(job: Job) -> Following:
    """What a job like this one waits for: those whose outputs it reads. Others that came before it ended long ago."""
    read = job.dependencies.filter(outputs=True, on__owner=job.owner_id).values_list("on_id", flat=True)
    return Following(outputs_of=tuple(read), retries=job.retries, retry_pause_s=job.retry_pause_s)


def check(owner: User, following: Following, *, of: Job | None = None) -> None:
    """Refuse what no job could follow.

    Args:
        of: the waiting job that is to follow them; None: one that is not there yet.

    Raises:
        Invalid: unknown jobs, jobs of others, too many, one that did not complete, a circle, numbers out of range.
    """
    refusals = Refusals()
    with refusals:
        if not 0 <= following.retries <= MAX_RETRIES:
            raise Invalid(_("A job can be retried 0 to %(most)s times.") % {"most": MAX_RETRIES}, field="retries")
    with refusals:
        if not 0 <= following.retry_pause_s <= MAX_PAUSE_S:
            raise Invalid(
                _("The retry delay must be 0 to %(most)s seconds.") % {"most": MAX_PAUSE_S},
                field="retry_pause_s",
            )
    needs = following.needs()
    with refusals:
        if len(needs) > MAX_JOBS:
            raise Invalid(_("A job can depend on at most %(most)s jobs.") % {"most": MAX_JOBS}, field="after")
    behind = set() if of is None else {of.pk, *_all_after(of.pk)}
    jobs = Job.objects.filter(owner=owner).in_bulk(list(needs)[:MAX_JOBS])
    for number in list(needs)[:MAX_JOBS]:
        field = next(name for name in FIELDS if number in getattr(following, name))
        with refusals:
            _check_one(jobs.get(number), number, needs[number], field)
            if number in behind:
                raise Invalid(_("Job %(number)s depends on this job. Remove it.") % {"number": number}, field=field)
    refusals.end()


def save(job: Job, following: Following) -> None:
    """Save what a job follows; `check` has passed before."""
    save_many([job], following)


def save_many(jobs: Iterable[Job], following: Following) -> None:
    """Write down what each of these jobs follows."""
    needs = following.needs()
    Dependency.objects.bulk_create(
        Dependency(job=job, on_id=number, needs=need, outputs=number in following.outputs_of)
        for job in jobs
        for number, need in needs.items()
    )


@transaction.atomic
def change(job: Job, following: Following, *, by: User) -> Job:
    """Let a waiting job follow other jobs than before.

    Raises:
        IllegalMove: it does not wait any more.
        Invalid: see `check`.
    """
    # two changes that each look for circles take turns
    owner = User.objects.select_for_update(no_key=True).get(pk=job.owner_id)
    fresh = Job.objects.select_for_update().get(pk=job.pk)
    if fresh.state != JobState.QUEUED:
        raise IllegalMove(_("Only a queued job can have dependencies."), state=fresh.state, verb="after")
    check(owner, following, of=fresh)
    fresh.dependencies.filter(on__owner=owner).delete()  # builds of others' images are no choice of the owner
    save(fresh, following)
    numbers = sorted(following.needs())
    message = (
        wording.message("job.follows", jobs=[str(number) for number in numbers])
        if numbers
        else wording.message("job.follows_none")
    )
    transitions.note(fresh, "follows_changed", message, by=by)
    scheduler_wakeup.notify()
    return fresh


def end_in_vain() -> list[int]:
    """Stop waiting jobs that follow one that did not complete; return their numbers."""
    rows = Dependency.objects.filter(
        job__state=JobState.QUEUED, needs=Dependency.Needs.SUCCESS, on__state__in=FINAL - COMPLETED
    )
    stopped = []
    for job, on in dict(rows.order_by("-pk").values_list("job_id", "on_id")[:ENDED_AT_ONCE]).items():
        message = wording.message("job.followed_failed", job=on)
        try:
            transitions.move(job, Event.STOP_REQUESTED, reason=Reason.DEPENDENCY, message=message)
            stopped.append(job)
        except DomainError as exc:
            log.info("job=%s follows job=%s in vain but was moved: %s", job, on, exc)
    return stopped


def _check_one(job: Job | None, number: int, need: str, field: str) -> None:
    if job is None:
        raise Invalid(
            _("You have no job %(number)s. Enter the number of one of your jobs.") % {"number": number},
            field=field,
        )
    if need == Dependency.Needs.SUCCESS and job.state in FINAL - COMPLETED:
        raise Invalid(
            _(
                "Job %(number)s did not complete, so the dependency cannot be met. Restore it first, or depend "
                "on its end."
            )
            % {"number": number},
            field=field,
        )


def _all_after(number: int) -> set[int]:
    """Numbers of all waiting jobs that follow this one, directly or through others."""
    numbers: set[int] = set()
    fresh = {number}
    while fresh:
        rows = Dependency.objects.filter(on__in=fresh, job__state=JobState.QUEUED)
        fresh = set(rows.values_list("job_id", flat=True)) - numbers
        numbers |= fresh
    return numbers
