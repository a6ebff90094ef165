"""Studies advance: outcomes become known, trials are pruned, new ones begin, and a study that has enough ends.

`advance` may be called by anybody at any time and be killed anywhere. What it decides it decides without a lock, from
rows alone; what it writes it writes in one transaction that holds the row of the study and looks again whether the
decision still stands. A trial and its job are one such transaction: there is never one without the other.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import OperationalError, transaction

from accounts.services.notify import notify
from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from training.runs import trials as marks
from training.runs.models import TrainingJob
from training.studies import budget, decider, objectives, problems, requests, space, values
from training.studies.models import Study, Trial
from workers.core.clock import now
from workers.core.models import Job
from workers.core.states import FINAL, Desired, IllegalMove, JobState, Reason
from workers.jobs import actions, transitions

log = logging.getLogger(__name__)

S, T = Study.State, Trial.State
AT_ONCE = 200  # studies of one sweep
MAX_FAILURES = 5  # in a row, of trials that began after each other: then something is wrong with all of them


def advance_due() -> int:
    """Advance all studies with something to do; returns how many there were. One that breaks holds up no other."""
    numbers = list(Study.objects.due().order_by("pk").values_list("pk", flat=True)[:AT_ONCE])
    for number in numbers:
        try:
            advance(number)
        except OperationalError:  # the database is away: the next sweep tries again
            raise
        except Exception:
            log.exception("study=%s did not advance, the next sweep tries again", number)
    return len(numbers)


def advance(number: int) -> None:
    """Bring one study on; idempotent."""
    study = Study.objects.select_related("owner", "code").filter(pk=number).first()
    if study is None:
        return
    _record_outcomes(study)
    _prune(study)
    while study.state == S.RUNNING and _start_trial(study):
        study.refresh_from_db()
    _end(study)


# What became of trials -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What the job of a trial says of it."""

    state: str
    values: list[float]
    points: list[list[float]]
    message: Message


def _record_outcomes(study: Study) -> None:
    """Record the outcome of trials whose jobs ended, and reopen trials whose jobs were restored."""
    goals = objectives.of_rows(study.objectives)
    for trial in study.trials.with_jobs():
        if trial.training is None:
            gone = wording.message("study.training_gone")
            study.trials.filter(pk=trial.pk, state=T.RUNNING).update(state=T.FAILED, message=gone, told_at=now())
            continue
        job = trial.training.job
        if trial.state != T.RUNNING:
            if not job.is_final:
                open_again: dict[str, Any] = {"state": T.RUNNING, "values": [], "message": {}, "told_at": None}
                study.trials.filter(pk=trial.pk, training__job__state=job.state).update(**open_again)
            elif job.attempt_number > trial.attempt and job.published:
                _write(trial, job, outcome(trial, trial.training, goals))
        elif job.published:
            _write(trial, job, outcome(trial, trial.training, goals))


def outcome(trial: Trial, training: TrainingJob, goals: Sequence[objectives.Objective]) -> Outcome:
    """Return the outcome of a trial whose job has ended and whose curves are complete."""
    job = training.job
    own = values.points(training, goals[0].key)
    points = values.thinned(own)
    failed, nothing = T.FAILED, wording.Message()
    if trial.pruned_attempt and trial.pruned_attempt == job.attempt_number:
        if own and not values.ended_as_no_number(training, goals[0].key):
            return Outcome(T.PRUNED, [own[-1][1]], points, nothing)
        return Outcome(failed, [], points, wording.message("study.no_value", key=goals[0].key))
    if job.state not in (JobState.SUCCEEDED, JobState.FINISHED_EARLY):
        return Outcome(failed, [], points, job.message)
    reached = values.reached(training, goals)
    if reached is None:
        keys = ", ".join(goal.key for goal in goals)
        return Outcome(failed, [], points, wording.message("study.no_value", key=keys))
    return Outcome(T.COMPLETE, reached, points, nothing)


def _write(trial: Trial, job: Job, result: Outcome) -> None:
    """Write an outcome unless the job has changed its state or attempt since it was evaluated."""
    unmoved = Trial.objects.filter(
        pk=trial.pk, training__job__state=job.state, training__job__attempt_number=job.attempt_number
    )
    unmoved.update(
        state=result.state, values=result.values, points=result.points, message=result.message,
        attempt=job.attempt_number, told_at=now(),
    )  # fmt: skip


# Who is not worth going on ----------------------------------------------------------------------------------------


def _prune(study: Study) -> None:
    """Evaluate each trial that has new points with the pruner, and finish the jobs of pruned trials early."""
    if not study.pruner or study.is_over:
        return
    goal = objectives.of_rows(study.objectives)[0]
    rows = list(study.trials.with_jobs())
    fresh: list[tuple[Trial, TrainingJob, list[float]]] = []
    for trial in rows:
        if trial.state != T.RUNNING or trial.training is None or not _may_be_pruned(trial.training.job):
            continue
        own = [value for _step, value in values.points(trial.training, goal.key)]
        if len(own) > trial.judged:
            fresh.append((trial, trial.training, own))
    if not fresh:
        return
    judge = decider.Judge(problems.for_study(study), problems.pasts(rows))
    for trial, training, own in fresh:
        pruned, judged, attrs = judge.prunes(trial.number, own, trial.judged)
        _apply_pruning(trial, training, pruned=pruned, judged=judged, attrs=attrs)


def _may_be_pruned(job: Job) -> bool:
    return job.state == JobState.RUNNING and job.desired == Desired.RUN


def _apply_pruning(trial: Trial, training: TrainingJob, *, pruned: bool, judged: int, attrs: dict[str, object]) -> None:
    """Store the decision of the pruner; of a pruned trial, finish the job in the same transaction."""
    try:
        with transaction.atomic():
            locked = Trial.objects.select_for_update().filter(pk=trial.pk, state=T.RUNNING, judged=trial.judged)
            if locked.first() is None:  # another caller was faster
                return
            columns: dict[str, object] = {"judged": judged, "attrs": attrs}
            if pruned:
                job = Job.objects.get(pk=training.job_id)
                marks.mark_pruned(job)
                message = wording.message("study.pruned", study=trial.study.name, point=judged)
                actions.finish(job, reason=Reason.PRUNED, message=message)
                columns["pruned_attempt"] = job.attempt_number
            locked.update(**columns)
    except (IllegalMove, transitions.StaleReport) as exc:
        log.info("study=%s trial=%s not pruned: %s", trial.study_id, trial.number, exc)


# Who begins -------------------------------------------------------------------------------------------------------


def _start_trial(study: Study) -> bool:
    """Start one more trial if the study needs one now; return whether there may be more to do."""
    rows = list(study.trials.with_jobs())
    if failing := _only_failures(study, rows):
        _fail(study, wording.message("study.only_failures", count=len(failing), why=failing[-1].message))
        return False
    if budget.exhausted(study, rows) or sum(row.state == T.RUNNING for row in rows) >= study.at_once:
        return False
    wanted = study.enqueued[0] if study.enqueued else None
    answer = decider.suggest_params(problems.for_study(study), problems.pasts(rows), wanted=wanted)
    try:
        _create_trial(study.pk, len(rows), answer, wanted)
    except DomainError as exc:
        log.info("study=%s refused: %s", study.pk, exc.sentences)
        _fail(study, wording.message("study.refused", why=wording.of_error(exc)))
    return True  # where somebody else was faster, it looks again


@transaction.atomic
def _create_trial(
    study_id: int, trial_number: int, answer: decider.Answer, wanted: dict[str, space.Value] | None
) -> Trial | None:
    """Create a trial and its job, both or neither; return None if the study has changed meanwhile.

    Raises:
        DomainError: its training is refused.
    """
    study = Study.objects.select_for_update(of=("self",)).select_related("owner", "code").get(pk=study_id)
    rows = study.trials.all()
    enqueued = study.enqueued[0] if study.enqueued else None
    if study.state != S.RUNNING or rows.count() != trial_number or enqueued != wanted:
        return None
    if trial_number >= study.max_trials or rows.live().count() >= study.at_once:
        return None
    training = requests.submit(study, answer.params, name=f"{study.name}_{trial_number}")
    marks.mark(training.job, study=study.pk, number=trial_number)
    trial = Trial.objects.create(
        study=study, number=trial_number, training=training, params=answer.params, attrs=answer.attrs,
        enqueued=wanted is not None,
    )  # fmt: skip
    study.memory, study.enqueued = answer.memory, study.enqueued[1:] if wanted is not None else study.enqueued
    study.save(update_fields=["memory", "enqueued"])
    return trial


# How it ends ------------------------------------------------------------------------------------------------------


def _end(study: Study) -> None:
    """End a study that begins no more trials: those that wait are stopped, and with the last one it is over."""
    study.refresh_from_db()
    if study.state != S.RUNNING:
        return
    rows = list(study.trials.with_jobs())
    why = budget.exhausted(study, rows)
    if not why:
        return
    live = [row for row in rows if row.state == T.RUNNING]
    if why.code != "study.all_trials":
        for trial in live:
            if trial.training and trial.training.job.state == JobState.QUEUED and not trial.training.job.attempt_number:
                _stop(trial.training.job)
    if live:
        return
    if not any(row.state == T.COMPLETE for row in rows):
        why = wording.message("study.nothing_completed", why=why)
    state = S.DONE if any(row.state == T.COMPLETE for row in rows) else S.FAILED
    if _over(study, state, why):
        news = "study.news_done" if state == S.DONE else "study.news_failed"
        _announce(study, "finished" if state == S.DONE else "failed", news, why)


def _only_failures(study: Study, rows: Sequence[Trial]) -> list[Trial]:
    """Return the newest trials since the study was started or resumed if there are many and all failed on their own."""
    ended = [row for row in rows if row.state != T.RUNNING and row.created_at >= study.started_at][-MAX_FAILURES:]
    failed = [row for row in ended if row.state == T.FAILED and not _was_stopped(row)]
    return failed if len(failed) == MAX_FAILURES else []


def _was_stopped(trial: Trial) -> bool:
    return trial.training is not None and trial.training.job.state == JobState.STOPPED


def _fail(study: Study, why: Message) -> None:
    if _over(study, S.FAILED, why):
        _announce(study, "failed", "study.news_failed", why)


def _over(study: Study, state: str, why: Message) -> bool:
    columns = {"state": state, "message": why, "ended_at": now()}
    ended = bool(Study.objects.filter(pk=study.pk, state=S.RUNNING).update(**columns))
    study.refresh_from_db()
    return ended


def _announce(study: Study, kind: str, code: str, why: Message) -> None:
    key = f"study-{study.pk}-{study.started_at.timestamp():.0f}"
    title = wording.message(code, name=study.name)
    notify(study.owner, kind, title=title, text=why, url=f"/studies/{study.pk}/", key=key)


def _stop(job: Job) -> None:
    try:
        actions.stop(job, reason=Reason.OWNER)
    except (IllegalMove, transitions.StaleReport) as exc:
        log.info("job=%s not stopped: %s", job.pk, exc)


def stop_all(study: Study) -> None:
    """Stop what is live of a study; the caller holds its row."""
    for trial in study.trials.with_jobs().filter(state=T.RUNNING, training__isnull=False):
        if trial.training.job.state not in FINAL:
            _stop(trial.training.job)
