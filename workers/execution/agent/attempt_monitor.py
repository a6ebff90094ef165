"""Attempt monitor: brings what an attempt's files say into the rows, and what its row requests into the files."""

from __future__ import annotations

import logging
import os
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from aiplatform.lib import disk, wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from workers.core import kinds, live, run_time
from workers.core.clock import now
from workers.core.kinds import Capabilities
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.core.states import Desired, Event, JobState, Reason
from workers.execution import closing_lines, evictions, launch, lost_attempts
from workers.execution.agent import containers, gangs, log_shipping, overdue, settling, verdicts
from workers.jobs import checkpoints, transitions
from workers.resources.nodes import unkillable
from workers.supervisor import log_lines, records

log = logging.getLogger(__name__)

S, E = JobState, Event
REQUESTS = {
    Desired.RUN: "run",
    Desired.PAUSE: "pause",
    Desired.STOP: "stop",
    Desired.FINISH: "finish",
    Desired.RELEASE: "suspend",
    Desired.EVICT: "evict",
}
_EVENT_OF_REQUEST = {
    Desired.STOP: (E.STOP_REQUESTED, S.STOPPING),
    Desired.FINISH: (E.FINISH_REQUESTED, S.FINISHING),
    Desired.RELEASE: (E.RELEASE_REQUESTED, S.PREEMPTING),
}
_ENDING = (Desired.STOP, Desired.FINISH)
_CHANGING = (S.ASSIGNED, S.STARTING, S.STOPPING)  # here time alone may require something
_GOING_ON = (Desired.RUN, Desired.PAUSE)
LIMIT_UNKNOWN = "?"
START_GRACE_S = 2.0  # who starts a job says so itself, unless it was killed meanwhile
BACK_OFF_S = (1, 2, 5, 10, 30, 60)
UNHEARD_S = 60.0  # a supervisor that began before an upgrade knows nothing of evictions
SLACK_S = 10.0  # who starts it ends it first, and knows better why
MAX_RETRY_PAUSE_S = 86_400
PERMANENT_FAILURE = os.EX_DATAERR  # exit code of a program that no further start would help
SETTLED = timedelta(minutes=10)  # a service that ran this long starts its back-off anew


class AttemptMonitor:
    """What the agent remembers of one live attempt between two looks; all of it can be found again."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.run = RunDir.for_attempt(attempt.job_id, attempt.number)
        self.log = log_shipping.Shipped(self.run.log)
        self.launch_requested = self.eviction_requested = 0.0  # monotonic
        self.limit = LIMIT_UNKNOWN
        self.gathering = gangs.Gathering()
        self.containers = containers.Ending()
        self.overdue, self.leftovers = overdue.Overdue(), overdue.Leftovers()
        self.seen = time.monotonic()
        self.ended: dict[str, Any] | None = None  # how it ended, until `settling.settle` has written that
        self.supervisor: int | None = None
        """Process that reports in files whatever happens next; None while only further looks can find that out."""
        self.is_watched = False  # whether such a report wakes the agent

    def check(self, attempt: Attempt, *, settle: bool = True) -> bool:
        """Reconcile rows and files once; return False when no supervisor exists yet and one should be started.

        Args:
            settle: write its end now; False leaves a plain one in `ended` for `settling.settle`.
        """
        self.attempt, self.supervisor = attempt, None
        supervisor = records.read(self.run.path / records.SUPERVISOR)
        cause = self._cause()
        if supervisor is None and cause is None:
            return self._too_early()
        try:
            if cause is not None and cause.how not in gangs.LEAVING and attempt.job.desired in _GOING_ON:
                self._other_rank_ended(cause)
                return True
            if supervisor is None:
                return True
            ended = records.read(self.run.path / records.EXIT)
            if ended is None and not records.is_alive(supervisor):
                ended = records.read(self.run.path / records.EXIT)  # it may have written just before it died
                if ended is None:
                    if self.gathering.done(attempt, self.run, alone_s=0):
                        self._lost(supervisor)
                    return True
            if ended is None and self._request(supervisor, cause):
                return True
            if not settle and settling.is_plain(attempt.job, ended):
                self.ended = ended
                self.report_log_growth(last=True)
                return True
            self._report(supervisor, over=ended is not None)
            self.report_log_growth(last=ended is not None)
            if ended is None and attempt.job.nodes == 1 and attempt.job.state not in _CHANGING:
                self.supervisor = int(supervisor["pid"])
            all_ended = ended and self.gathering.done(attempt, self.run, alone_s=self._alone_s(ended, cause))
            if ended and all_ended and not self._fell_with_another(ended, cause):
                self._ended({**ended, **gangs.meaning(cause)})
        except (transitions.StaleReport, transitions.IllegalMove) as exc:
            log.info("job=%s attempt=%s: %s", attempt.job_id, attempt.number, exc)
        return True

    def _too_early(self) -> bool:
        """No supervisor: wait for the message a moment, then ask the agent to start it itself.

        On a full disk none can begin. That is no fault of the job, so it waits for room; so it does for its image.
        """
        if disk.has_no_room(settings.DATA_ROOT) or launch.waits(self.run.path):
            self.seen = time.monotonic()
        if time.monotonic() - self.seen > launch.PREPARE_LIMIT_S + SLACK_S:
            launch.give_up(self.attempt)
            return True
        waited = (now() - self.attempt.assigned_at).total_seconds()
        return waited < 1.5 or time.monotonic() - self.launch_requested < 3

    def _cause(self) -> gangs.Cause | None:
        """Why the ranks of a gang end together, if they do."""
        if self.attempt.job.nodes == 1:
            return None
        return gangs.cause(self.run) or gangs.blame_who_leaves(self.run, 0)

    def _alone_s(self, ended: dict[str, Any], cause: gangs.Cause | None) -> float:
        """Seconds that the other ranks may take to end by themselves, as ours has."""
        if cause is not None or self.attempt.job.desired == Desired.RELEASE:
            return gangs.LADDER_S
        return gangs.LEAVE_S if ended.get("code") == 0 else 0.0

    def _fell_with_another(self, ended: dict[str, Any], cause: gangs.Cause | None) -> bool:
        """Whether our rank of a gang failed because another one did; the end of that rank is then the cause."""
        job = self.attempt.job
        if job.nodes == 1 or cause is not None or ended.get("code") == 0 or not goes_on(job):
            return False
        if self.gathering.lost:
            gangs.blame(self.run, self.gathering.lost[0], gangs.RankEnd.LOST)
            return True
        cause_of_end = gangs.blame_for_end(self.run, job.nodes, 0)
        return cause_of_end is not None and cause_of_end.how is not gangs.RankEnd.FAILED

    def _request(self, supervisor: dict[str, Any], cause: gangs.Cause | None) -> bool:
        """Write the request, first into the event log, then into the file that the supervisor reads.

        Returns:
            Whether the attempt is over by that: nothing ends its supervisor, and its machine takes no more work.
        """
        job = self.attempt.job
        desired = Desired(job.desired)
        if desired in _EVENT_OF_REQUEST:
            event, state = _EVENT_OF_REQUEST[desired]
            if job.state != state and job.state != S.STOPPING:
                self._move(event, reason=job.reason, message=self._platform_message())
        word = records.compatible_request(self.run.path, request_for(job, cause))
        if records.read_request(self.run.path) != word:
            records.write_request(self.run.path, word)
        self.limit = write_limit(self.run.path, job, self.limit)
        stuck = self.overdue.enforce(self.run.path, supervisor, word)
        if stuck:
            unkillable.report(settings.NODE, job, stuck)
            self._lose(supervisor)
        return bool(stuck)

    def _platform_message(self) -> Message:
        """Message shown with the job when the platform, not a user, requested its end or preemption."""
        job = self.attempt.job
        ours = job.desired == Desired.RELEASE or job.reason in (
            Reason.OUT_OF_MEMORY, Reason.IDLE, Reason.PAUSE_OVER, Reason.PRUNED,
        )  # fmt: skip
        return job.message if ours else Message()

    def _report(self, supervisor: dict[str, Any], *, over: bool) -> None:
        """Record the present state of the processes where the rows differ.

        Args:
            over: its exit record is there.
        """
        job = self.attempt.job
        if job.state in (S.ASSIGNED, S.STARTING):
            if not over and 0 <= time.time() - float(supervisor.get("started_at", 0)) < START_GRACE_S:
                return
            job.refresh_from_db(fields=["state"])
            if job.state in (S.ASSIGNED, S.STARTING) and supervisor.get("child"):
                self._move(E.STARTED)
            elif job.state == S.ASSIGNED:
                self._move(E.LAUNCHED)
        job = self.attempt.job
        report = records.read(self.run.path / records.STATUS) or {}
        status = report.get("state")
        if job.state == S.RUNNING and job.desired == Desired.EVICT and status in ("evicted", "kept"):
            away, why = status == "evicted", wording.verbatim(report.get("why", ""))
            self.attempt.job = evictions.left(self.attempt) if away else evictions.stayed(self.attempt, why)
        elif job.state == S.RUNNING and job.desired == Desired.EVICT and status == "running":
            self.eviction_requested = self.eviction_requested or time.monotonic()
            if time.monotonic() - self.eviction_requested > UNHEARD_S:
                too_old = wording.message("job.supervisor_too_old")
                self.attempt.job = evictions.stayed(self.attempt, too_old)
        elif job.state == S.RUNNING and status == "paused":
            self._move(E.PAUSED)
        elif job.state == S.PAUSED and status == "running":
            self._move(E.RESUMED)

    def report_log_growth(self, *, last: bool = False) -> None:
        """Tell viewers that the log grew."""
        size = self.log.check(last=last)
        if size is not None:
            if last:  # whoever reads elsewhere knows when it has seen all
                Attempt.objects.filter(pk=self.attempt.pk).update(log_bytes=size)
            live.nudge(self.attempt.job_id, log_bytes=size)

    def settle(self, attempt: Attempt) -> None:
        """Write how it ended, by itself."""
        self.attempt = attempt
        try:
            self._report(records.read(self.run.path / records.SUPERVISOR) or {}, over=True)
            self._ended(self.ended or {})
        except (transitions.StaleReport, transitions.IllegalMove) as exc:
            log.info("job=%s attempt=%s: %s", self.attempt.job_id, self.attempt.number, exc)

    def _ended(self, record: dict[str, Any]) -> None:
        unkillable.report(settings.NODE, self.attempt.job, record.get("unkillable") or ())
        with transaction.atomic():
            # what was requested up to now counts, read under the lock that a request would have to take
            job = self.attempt.job = Job.objects.select_for_update().get(pk=self.attempt.job_id)
            if job.desired in _ENDING and record.get("requested") not in _ENDING and record.get("code") != 0:
                record = {**record, "requested": str(job.desired)}  # it ended before its supervisor could read this
            can_suspend = self._capabilities().suspend
            folder = checkpoints.newest_checkpoint(job)
            verdict = verdicts.judge(
                record, job.state, wanted_reason=job.reason, can_suspend=can_suspend, saved=folder is not None,
                requested_message=self._platform_message(),
            )  # fmt: skip
            if verdict.first:
                self._move(verdict.first, reason=verdict.reason, locked=job)
            stays = lost_attempts.stays_paused(job)
            self._move(
                verdict.event, reason=verdict.reason, message=verdict.message, exit_code=verdict.exit_code, locked=job
            )
            job = self.attempt.job
            if job.state == S.QUEUED:  # also where it fell while it made room
                Job.objects.filter(pk=job.pk).update(resume_from=str(folder or ""))
            if stays and job.state == S.QUEUED:  # it had been paused or idle: only its owner continues it
                Job.objects.filter(pk=job.pk).update(desired=Desired.PAUSE)
            if record.get("disk_bytes"):
                Attempt.objects.filter(pk=self.attempt.pk).update(disk_bytes=record["disk_bytes"])
            self._start_again(verdict.exit_code)

    def _start_again(self, exit_code: int | None = None) -> None:
        """A service that failed starts again, with growing pauses; any other job as often as was requested.

        A service whose program says by its exit code that another start would fail in the same way stays failed, and
        so does what exceeded its disk limit.
        """
        job = self.attempt.job
        if job.state != S.FAILED or job.desired in _ENDING or job.reason == Reason.DISK_LIMIT:
            return
        if job.restart == Job.Restart.ON_FAILURE and exit_code == PERMANENT_FAILURE:
            why = closing_lines.last_error(self.run.log)
            message = wording.message("job.not_started_again", why=wording.verbatim(why) if why else job.message)
            Job.objects.filter(pk=job.pk, state=S.FAILED).update(message=message)
        elif job.restart == Job.Restart.ON_FAILURE:
            pause_s = self._pause_of_a_service()
            closing_lines.add(self.run.log, log_lines.PROGRAM, "starts_again", seconds=pause_s)
            self._move(E.REQUEUED, message=wording.message("job.starts_again", why=job.message, seconds=pause_s))
            Job.objects.filter(pk=job.pk).update(not_before=now() + timedelta(seconds=pause_s))
        elif job.retried < job.retries:
            self._retry(job)

    def _pause_of_a_service(self) -> int:
        settled = self.attempt.started_at and now() - self.attempt.started_at > SETTLED
        recent = 0 if settled else self.attempt.job.attempts.filter(ended_at__gt=now() - SETTLED).count() - 1
        return BACK_OFF_S[min(max(recent, 0), len(BACK_OFF_S) - 1)]

    def _retry(self, job: Job) -> None:
        """Queue a failed job once more, after a pause that doubles each time."""
        pause_s = min(job.retry_pause_s * 2**job.retried, MAX_RETRY_PAUSE_S)
        message = wording.message(
            "job.tried_again", why=job.message, seconds=pause_s, number=job.retried + 1, most=job.retries
        )
        folder = checkpoints.newest_checkpoint(job)
        again = {"seconds": pause_s, "number": job.retried + 1, "most": job.retries}
        closing_lines.add(self.run.log, log_lines.PROGRAM, "again", **again)
        self._move(E.REQUEUED, message=message)
        Job.objects.filter(pk=job.pk).update(
            retried=job.retried + 1, not_before=now() + timedelta(seconds=pause_s), resume_from=str(folder or "")
        )

    def _other_rank_ended(self, cause: gangs.Cause) -> None:
        """End our rank because another failed or is lost and, once all have ended, the attempt."""
        with transaction.atomic():  # nobody sees it failed where it is tried again
            gangs.end_attempt(self.attempt, self.run, cause)
            self.attempt.job.refresh_from_db()
            if self.attempt.job.attempt_number == self.attempt.number:
                self._start_again()

    def _lost(self, supervisor: dict[str, object]) -> None:
        """Handle a supervisor that vanished without an exit record: it was killed, or the node went down."""
        left = sweep(self.run)
        if self.leftovers.wait_for(left) or not self.containers.ended(self.run.path):
            return  # it may run on: nothing may start it again before that is certain
        unkillable.report(settings.NODE, self.attempt.job, left)
        self._lose(supervisor, is_over=not left and self.attempt.job.nodes == 1)

    def _lose(self, supervisor: dict[str, object], *, is_over: bool = False) -> None:
        closing_lines.add(self.run.log, log_lines.PROGRAM, "lost")
        rebooted = supervisor.get("boot_id") != records.boot_id()
        reason = Reason.NODE_LOST if rebooted else Reason.SUPERVISOR_LOST
        message = wording.message("job.machine_restarted" if rebooted else "job.supervisor_lost")
        again = wording.message("job.requeued")
        self.attempt.job = lost_attempts.lose(
            self.attempt, reason=reason, message=message, again=again, is_over=is_over
        )

    def _capabilities(self) -> Capabilities:
        try:
            return kinds.get(self.attempt.job.kind).capabilities(self.attempt.job)
        except (KeyError, DomainError):
            return Capabilities()

    def _move(
        self,
        event: Event,
        *,
        reason: str = "",
        message: Message = transitions.NOTHING,
        exit_code: int | None = None,
        locked: Job | None = None,
    ) -> None:
        self.attempt.job = transitions.move(
            self.attempt.job_id,
            event,
            attempt=self.attempt.number,
            reason=reason,
            message=message,
            exit_code=exit_code,
            locked=locked,
        )


def request_for(job: Job, cause: gangs.Cause | None) -> str:
    """Word for the supervisor of a rank: what is requested of the job, or to leave because another rank does."""
    desired = Desired(job.desired)
    if desired == Desired.STOP and job.forced_at is not None:
        return "kill"
    if desired == Desired.FINISH and job.reason == Reason.PRUNED:
        return records.FINISH_QUICK
    return "suspend" if cause is not None and cause.how in gangs.LEAVING and desired in _GOING_ON else REQUESTS[desired]


def goes_on(job: Job) -> bool:
    """Whether the job is to continue: the row requests neither its end nor its preemption."""
    return Job.objects.filter(pk=job.pk, desired__in=_GOING_ON).exists()


def write_limit(home: Path, job: Job, written: str = LIMIT_UNKNOWN) -> str:
    """Write the job's maximum run time for its supervisor, unless it is written already; return what is written now.

    Args:
        told: what was returned the last time.
    """
    span = run_time.runtime(job)
    word = "" if span is None else str(span.total_seconds())
    if word != written:
        first = (records.read(home / records.LAUNCH) or {}).get("max_runtime_s")
        if records.read_limit(home, first) != (None if span is None else span.total_seconds()):
            records.write(home / records.LIMIT, word)
    return word


def sweep(run: RunDir) -> list[int]:
    """Kill every process that carries this run's folder in its environment; return them.

    Only needed where a killed supervisor could not take its children along; a job's own children
    inherit the mark unless they scrub it.
    """
    mark = f"AIP_OUTPUT_DIR={run.outputs}".encode()
    killed = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGKILL)
                killed.append(int(entry.name))
        except OSError:  # gone, or not ours to read
            continue
    return killed
