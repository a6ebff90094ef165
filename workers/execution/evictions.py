"""Evictions: move a job's card memory to its machine's memory, and back onto the same cards.

Off everywhere until an operator allows it on a machine, and that is refused until the machine's driver can and a proof
on one of its cards (`manage.py prove_eviction`) has shown that it does. The planner decides who leaves and who comes
back; the supervisor does it (workers/supervisor/gpu_checkpoint.py).
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from aiplatform import env
from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from workers.core import scheduler_wakeup
from workers.core.clock import now
from workers.core.models import Allocation, Attempt, Device, Job
from workers.core.states import Desired, Event, IllegalMove, JobState, Reason
from workers.jobs import transitions
from workers.resources.nodes import eviction_policy


@transaction.atomic
def evict(job_id: int, *, for_job: int, why: str) -> Job:
    """Ask that a running job leaves its cards for a while.

    Raises:
        IllegalMove: it does not run, runs too short, or its machine does not allow it or lacks the memory.
        StaleReport: somebody moved it first.
    """
    job = Job.objects.get(pk=job_id)
    attempt = job.attempts.filter(number=job.attempt_number, ended_at=None).first()
    if attempt is None or job.state != JobState.RUNNING or job.desired != Desired.RUN or attempt.eviction_refusal:
        raise IllegalMove(_("Only running jobs can leave their GPUs."), state=job.state, verb="evict")
    running_since = attempt.returned_at or attempt.started_at or attempt.assigned_at
    if why != "guarantee" and now() - running_since < timedelta(seconds=env.MIN_RUN_S):
        raise IllegalMove(_("The job has not run long enough to be preempted."), state=job.state, verb="evict")
    node, mib = eviction_policy.card_memory(attempt)
    if job.nodes > 1 or not mib or mib > eviction_policy.spare_mib(now()).get(node, 0):
        raise IllegalMove(
            _("The node has not enough free memory for the state of the job."), state=job.state, verb="evict"
        )
    message = wording.message(f"job.leaves_for_{why}", job=for_job)
    return transitions.request_room(job, Desired.EVICT, message, makes_room_for=for_job)


@transaction.atomic
def left(attempt: Attempt) -> Job:
    """Its card memory is on the host: give its cards to others, and keep its place on them.

    Raises:
        StaleReport, IllegalMove: it was moved meanwhile.
    """
    message = wording.message("job.evicted")
    return transitions.move(
        attempt.job_id, Event.EVICTED, attempt=attempt.number, reason=Reason.EVICTED, message=message
    )


@transaction.atomic
def stayed(attempt: Attempt, why: Message) -> Job:
    """Record that an attempt could not leave its cards: it runs on, and no eviction is requested again in it."""
    unchanged = Job.objects.filter(pk=attempt.job_id, desired=Desired.EVICT, attempt_number=attempt.number)
    if unchanged.update(desired=Desired.RUN, makes_room_for=None, message=transitions.NOTHING):
        Attempt.objects.filter(pk=attempt.pk).update(eviction_refusal=str(why.facts.get("text", why.code))[:300] or "?")
        job = Job.objects.get(pk=attempt.job_id)
        transitions.note(job, "stayed", wording.message("job.stays", why=why))
        scheduler_wakeup.notify()
    return Job.objects.get(pk=attempt.job_id)


@transaction.atomic
def come_back(job_id: int) -> Job:
    """Give an evicted job its cards again and let it go on.

    Raises:
        IllegalMove: it is not away, or its cards are not free any more; nothing was written.
        StaleReport: somebody moved it first.
    """
    job = Job.objects.get(pk=job_id)
    attempt = job.attempts.filter(number=job.attempt_number, ended_at=None, evicted_at__isnull=False).first()
    if attempt is None or attempt.evicted_at is None or job.state != JobState.PAUSED or job.desired != Desired.EVICT:
        raise IllegalMove(_("The job has not left its GPUs."), state=job.state, verb="come_back")
    held = Allocation.objects.filter(attempt=attempt, released_at=None)
    for device, share in held.values_list("device_id", "share"):
        free = Device.objects.filter(pk=device, health=Device.Health.OK, used__lte=F("capacity") - share)
        if not free.update(used=F("used") + share):
            raise IllegalMove(_("The GPUs are not free."), state=job.state, verb="come_back")
    moment = now()
    evicted_s = attempt.evicted_s + (moment - attempt.evicted_at).total_seconds()
    rows = Attempt.objects.filter(pk=attempt.pk, evicted_at=attempt.evicted_at, ended_at=None)
    job_row = Job.objects.filter(pk=job.pk, state=job.state, desired=Desired.EVICT, attempt_number=job.attempt_number)
    if not rows.update(evicted_at=None, returned_at=moment, evicted_s=evicted_s) or not job_row.update(
        desired=Desired.RUN
    ):
        raise transitions.StaleReport(_("%(job)s was moved by another user.") % {"job": job})
    transitions.note(job, "coming_back", wording.message("job.coming_back"))
    return Job.objects.get(pk=job.pk)
