"""Tables of jobs: what was requested (Job), each try (Attempt), devices held (Allocation), event log (JobEvent)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from aiplatform.lib.message_field import MessageField
from workers.core.models.clusters import VirtualCluster
from workers.core.models.nodes import Device, Node, tier_label
from workers.core.querysets import JobQuerySet
from workers.core.states import FINAL, LIVE, PREPARATION, Desired, JobPhase, JobState, Reason
from workers.core.wait_reasons import sentence

_STATE_LABELS = dict(JobState.choices)


class Job(models.Model):
    """One command that the platform runs on devices, of any owner and kind.

    What it means (a training, an evaluation, a service) belongs to its kind, see
    workers/core/kinds.py. `state` has one writer: workers.jobs.transitions.
    """

    class Restart(models.TextChoices):
        NEVER = "never", _("Never")
        ON_FAILURE = "on_failure", _("On failure, with increasing delays")

    URGENT: ClassVar[int] = 100  # priority from here on is the urgent tier

    kind = models.CharField(max_length=20, db_index=True)
    name = models.CharField(max_length=100)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="jobs")
    cluster = models.ForeignKey(VirtualCluster, models.PROTECT, related_name="jobs")
    state = models.CharField(max_length=16, choices=JobState, default=JobState.QUEUED, editable=False)
    desired = models.CharField(max_length=8, choices=Desired, default=Desired.RUN, editable=False)
    forced_at = models.DateTimeField(null=True, blank=True, editable=False)  # killed without any grace
    attempt_number = models.PositiveIntegerField(default=0, editable=False)  # +1 per placement
    reason = models.CharField(max_length=20, choices=Reason, blank=True, editable=False)
    message = MessageField(editable=False)  # why it is where it is

    nodes = models.PositiveSmallIntegerField(default=1)  # of its last placement, before the first one as asked
    min_nodes = models.PositiveSmallIntegerField(default=0)  # fewer than it wants will do; 0: all or none
    max_nodes = models.PositiveSmallIntegerField(default=0)  # what it wants, where fewer will do
    gpus_per_node = models.PositiveSmallIntegerField(default=0)  # 0: CPU only
    device_kind = models.CharField(max_length=8, default="gpu")  # kind of the cards asked for, see device_kinds
    device_model = models.CharField(max_length=100, blank=True)  # model of the cards asked for, "" takes any
    needs = models.JSONField(default=dict, blank=True)  # of a machine, by its image: {"cuda": 12040, "arch": "x86_64"}
    share = models.PositiveSmallIntegerField(default=8)  # eighths of each card
    card_memory_mib = models.PositiveIntegerField(default=0)  # least memory of that share; 0: any
    memory_mib = models.PositiveIntegerField(default=0)  # most host memory per node; 0: no bound
    max_disk_bytes = models.BigIntegerField(
        null=True, blank=True
    )  # most disk space on each node, see workers/core/disk_limits.py; None: the cluster's
    cpus = models.FloatField(default=1.0)  # cores per node: threads, and CPU shares when gpus_per_node is 0
    priority = models.SmallIntegerField(default=0)  # higher starts first; >= URGENT is the urgent tier
    preemptible = models.BooleanField(default=False)
    root_inside = models.BooleanField(default=False)  # its programs are root of a user namespace of their own
    max_runtime = models.DurationField(null=True, blank=True)  # None: no limit
    more_time = models.DurationField(default=timedelta, editable=False)  # granted beyond the limit
    restart = models.CharField(max_length=12, choices=Restart, default=Restart.NEVER)
    spec = models.JSONField(default=dict)  # snapshot the kind needs to build the command again
    resume_from = models.CharField(max_length=500, blank=True)  # checkpoint directory for the next attempt
    retries = models.PositiveSmallIntegerField(default=0)  # how often it is started again where its program fails
    retry_pause_s = models.PositiveIntegerField(default=30)  # before the first of them; it doubles each time
    retried = models.PositiveSmallIntegerField(default=0, editable=False)  # how often that was done
    array = models.ForeignKey(
        "workers.JobArray", models.SET_NULL, null=True, blank=True, related_name="jobs", editable=False
    )
    array_index = models.PositiveIntegerField(null=True, blank=True, editable=False)

    created_at = models.DateTimeField(default=now)
    queued_at = models.DateTimeField(default=now)  # keeps its place over preemptions
    makes_room_for = models.PositiveBigIntegerField(null=True, blank=True, editable=False)  # job, while it is preempted
    not_before = models.DateTimeField(null=True, blank=True)  # pause before it starts again
    started_at = models.DateTimeField(null=True, blank=True)  # first time it ran
    ended_at = models.DateTimeField(null=True, blank=True)
    published_attempt = models.PositiveIntegerField(default=0, editable=False)  # kinds.ended() done up to here

    wait_code = models.CharField(max_length=30, blank=True)  # why it waits, written by the scheduler
    wait_args = models.JSONField(default=dict, blank=True)  # values of its text, see wait_reasons.py
    position = models.PositiveIntegerField(null=True, blank=True)  # place in its cluster's queue, from 1
    eta = models.DateTimeField(null=True, blank=True)  # when it will probably start
    # What the program reports, by the rules of workers/jobs/output/job_progress.py.
    progress = models.FloatField(null=True, blank=True)  # 0..1 of the phase; None: not known
    eta_s = models.FloatField(null=True, blank=True)  # seconds until the job ends
    phase = models.CharField(max_length=12, choices=JobPhase, blank=True, editable=False)
    phase_done = models.BigIntegerField(null=True, blank=True, editable=False)  # counter within the phase
    phase_total = models.BigIntegerField(null=True, blank=True, editable=False)
    phase_times = models.JSONField(default=dict, blank=True, editable=False)  # {phase: {"spent_s", "left_s"}}

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(nodes__gte=1), name="job_has_a_node"),
            models.CheckConstraint(
                condition=Q(min_nodes=0, max_nodes=0) | Q(min_nodes__gte=1, max_nodes__gt=F("min_nodes")),
                name="job_has_a_range_of_nodes",
            ),
            models.CheckConstraint(condition=Q(cpus__gt=0), name="job_has_cpu"),
            models.CheckConstraint(condition=Q(share__gte=1, share__lte=8), name="job_has_a_share"),
        ]
        indexes = [  # the scheduler reads only the queue, on every tick
            models.Index(fields=["-priority", "queued_at"], condition=Q(state="queued"), name="job_queue"),
            models.Index(fields=["state", "kind"], name="job_state_kind"),
        ]

    def __str__(self) -> str:
        return f"{self.name} (#{self.pk})"

    def get_state_display(self) -> str:  # type: ignore[no-redef]  # takes the place of what Django makes
        """Its state in words; Django's own gathers the words of all states at each call."""
        return str(_STATE_LABELS.get(self.state, self.state))

    @property
    def ranks(self) -> range:
        """Its machines, counted from 0; of every attempt, where it had more in an earlier one."""
        return range(max(self.nodes, self.max_nodes))

    @property
    def wanted_nodes(self) -> int:
        """The machines it asks for; it may have got fewer."""
        return self.max_nodes or self.nodes

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def published(self) -> bool:
        """Whether it has ended and its kind has kept what the last attempt left: figures, a model."""
        return self.is_final and self.published_attempt >= self.attempt_number

    @property
    def is_preparing(self) -> bool:
        """Whether it has not begun its main work: preparation only shows its own counter."""
        return self.phase in PREPARATION

    @property
    def shows_percent(self) -> bool:
        return self.progress is not None and not self.is_preparing

    @property
    def timeline(self) -> list[dict[str, Any]]:
        """The time of each phase, in the order in which phases run; `left_s` only while the job may still run."""
        return [
            {
                "phase": phase.value,
                "name": phase.label,
                "spent_s": seconds.get("spent_s", 0.0),
                "left_s": None if self.is_final else seconds.get("left_s"),
            }
            for phase in JobPhase
            if (seconds := self.phase_times.get(phase.value))
        ]

    @property
    def is_live(self) -> bool:
        return self.state in LIVE

    @property
    def wait_sentence(self) -> str:
        """Why it waits, in the reader's language; empty unless it waits."""
        return sentence(self.wait_code, self.wait_args) if self.state == JobState.QUEUED else ""

    @property
    def memory_bytes(self) -> int:
        """Most host memory per node; 0 is no bound."""
        return self.memory_mib << 20

    @property
    def span(self) -> timedelta | None:
        """Total run time of its attempts so far; None if it never ran. Lists prefetch the attempts."""
        moment = now()
        ran = [
            (attempt.ended_at or moment) - attempt.started_at for attempt in self.attempts.all() if attempt.started_at
        ]
        return sum(ran, timedelta(0)) if ran else None

    @property
    def total_gpus(self) -> int:
        return self.nodes * self.gpus_per_node


class Attempt(models.Model):
    """One try of a job on certain devices. All writes are compare-and-set on (job, number, state)."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="attempts")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=JobState, default=JobState.ASSIGNED, editable=False)
    reason = models.CharField(max_length=20, choices=Reason, blank=True)
    message = MessageField()  # how it ended
    exit_code = models.IntegerField(null=True, blank=True)
    checkpoint_in = models.CharField(max_length=500, blank=True)
    assigned_at = models.DateTimeField(default=now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)  # None: live
    busy_at = models.DateTimeField(null=True, blank=True)  # when its cards were last seen to compute
    idle_warned_at = models.DateTimeField(null=True, blank=True)
    sandbox_tier = models.PositiveSmallIntegerField(
        null=True, blank=True
    )  # None: not started yet, or before this was kept
    image = models.CharField(max_length=300, blank=True)  # the container's, in tier 4
    evicted_at = models.DateTimeField(null=True, blank=True)  # while its card memory is on the host
    returned_at = models.DateTimeField(null=True, blank=True)  # when it last got its cards back after that
    evicted_s = models.FloatField(default=0.0)  # how long it was without its cards, before `returned_at`
    eviction_refusal = models.CharField(
        max_length=300, blank=True
    )  # why it could not be evicted; it is not tried again
    disk_bytes = models.BigIntegerField(
        null=True, blank=True
    )  # what it takes of its disk limit on its first node; None: it has none, or not measured
    log_bytes = models.PositiveBigIntegerField(default=0)  # length of its log at its end, as its node saw it
    metrics_cursor = models.PositiveBigIntegerField(default=0)  # bytes of metrics.jsonl already in its curves
    metrics_step = models.BigIntegerField(default=0)  # where the last of those lines stood

    class Meta:
        ordering = ["job", "number"]
        constraints = [
            models.UniqueConstraint(fields=["job", "number"], name="attempt_number_once"),
            models.UniqueConstraint(fields=["job"], condition=Q(ended_at=None), name="one_live_attempt_per_job"),
        ]

    def __str__(self) -> str:
        return f"{self.job} attempt {self.number}"

    @property
    def sandbox_words(self) -> str:
        """What kept it apart from everything else, in words."""
        return tier_label(self.sandbox_tier)


class Allocation(models.Model):
    """Shares of one device, held by one attempt until it ends (`released_at`).

    While the attempt is evicted (`evicted_at`) they are its place and not counted in `Device.used`.
    """

    attempt = models.ForeignKey(Attempt, models.CASCADE, related_name="allocations")
    node = models.ForeignKey(Node, models.PROTECT, related_name="allocations")
    device = models.ForeignKey(Device, models.PROTECT, related_name="allocations")
    rank = models.PositiveSmallIntegerField(default=0)  # which node of the gang
    share = models.PositiveSmallIntegerField(default=8)
    port = models.PositiveIntegerField(null=True, blank=True)  # first leased port on the node, if any
    mps = models.BooleanField(default=False)  # its programs use the card through a CUDA MPS daemon of the machine
    mps_refusal = MessageField()  # why they do not, where the operator allows it
    released_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["node"], condition=Q(released_at=None), name="allocation_live")]
        constraints = [
            models.UniqueConstraint(
                fields=["node", "port"], condition=Q(released_at=None, port__isnull=False), name="port_leased_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.share}/8 of {self.device} for {self.attempt}"


class JobEvent(models.Model):
    """The job's event log: one row per move, never edited, shown on its page."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="events")
    at = models.DateTimeField(default=now)
    attempt = models.PositiveIntegerField()
    event = models.CharField(max_length=20)
    state = models.CharField(max_length=16)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True)
    message = MessageField()

    class Meta:
        ordering = ["pk"]
        indexes = [models.Index(fields=["job", "id"], name="story_of_job")]

    def __str__(self) -> str:
        return f"{self.job}: {self.event}"
