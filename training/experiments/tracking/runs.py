"""Runs as scripts make and change them. Who may was asked before."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid
from training.experiments import records
from training.experiments.models import Param, Run, Tag
from training.experiments.tracking import refusals
from training.experiments.tracking.callers import Caller
from training.experiments.tracking.models import Experiment, JobToken, Reported
from workers.core.models import Job
from workers.core.states import JobState

NAME, PARENT, NOTE, USER = "mlflow.runName", "mlflow.parentRunId", "mlflow.note.content", "mlflow.user"
RUNNING, SUCCEEDED, FAILED, STOPPED = "running", "succeeded", "failed", "stopped"
#: MLflow's words for states, and the platform's of a run without a job.
STATES = {
    "RUNNING": RUNNING, "SCHEDULED": RUNNING, "FINISHED": SUCCEEDED, "FAILED": FAILED, "KILLED": STOPPED,
}  # fmt: skip
OF_JOBS = {
    "SCHEDULED": (JobState.QUEUED,),
    "RUNNING": (JobState.ASSIGNED, JobState.STARTING, JobState.RUNNING, JobState.PAUSED, JobState.STOPPING,
                JobState.FINISHING, JobState.PREEMPTING),
    "FINISHED": (JobState.SUCCEEDED, JobState.FINISHED_EARLY),
    "FAILED": (JobState.FAILED, JobState.LOST),
    "KILLED": (JobState.STOPPED,),
}  # fmt: skip
OLD_NUMBERS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}  # as protobuf counts them
MAX_TAGS = 1000
MAX_TAG_LENGTH = 8000
MAX_NAME_LENGTH = 100
MAX_DEPTH = 8


def status_of(run: Run) -> str:
    """MLflow's word for the state of a run."""
    if run.job is not None:
        return next(word for word, states in OF_JOBS.items() if run.job.state in states)
    return next((word for word, state in STATES.items() if state == run.state), "RUNNING")


def create(
    caller: Caller, experiment: Experiment, *, name: str, tags: Mapping[str, str], begun: datetime | None
) -> Run:
    """Make a run without a job. What a job's script makes belongs below the run of the job.

    Raises:
        Missing: its parent is none, or not for this caller.
        Invalid: too deep below others, or tags as `set_tags` refuses them.
    """
    parent = caller.own_run
    if uid := tags.get(PARENT):
        parent = caller.run_to_change(uid)
    depth, above = 0, parent
    while above is not None:
        depth, above = depth + 1, above.parent
    if depth > MAX_DEPTH:
        raise Invalid(_("Runs can be nested at most %(most)s levels deep.") % {"most": MAX_DEPTH}, field="tags")
    run = Run(owner=caller.user, parent=parent, experiment=experiment.name, state=RUNNING, created_at=begun or now())
    run.name = (name or tags.get(NAME) or f"run-{run.uid[:8]}")[:MAX_NAME_LENGTH]
    with transaction.atomic():
        run.save()
        Reported.objects.create(run=run, job=caller.job)
        set_tags(run, {key: value for key, value in tags.items() if key != PARENT})
    return run


def opened(token: JobToken) -> None:
    """Note that a job's script has opened the job's run: from now on it stays in its experiment."""
    if not token.opened:
        JobToken.objects.filter(pk=token.pk).update(opened=True)


def update(run: Run, *, status: str, ended: datetime | None, name: str) -> None:
    """Change state and name. The state of a job's run is the job's, whatever its script says.

    Raises:
        Invalid: a state that is none.
    """
    if status and status not in STATES:
        raise Invalid(
            _("%(name)s must be one of %(words)s.") % {"name": "status", "words": ", ".join(STATES)}, field="status"
        )
    if name:
        run.name = name[:MAX_NAME_LENGTH]
    if run.job is None and status:
        run.state = STATES[status]
        run.ended_at = None if run.state == RUNNING else ended or now()
    run.save(update_fields=["name", "state", "ended_at"])


def archive(run: Run, *, archived: bool) -> None:
    """Take a run out of lists, or bring it back; nothing is deleted."""
    run.archived = archived
    run.save(update_fields=["archived"])


def require_active(run: Run) -> Run:
    """Refuse reports to a deleted run.

    Raises:
        Invalid: it is one.
    """
    if run.archived:
        message = _("The run %(uid)s was deleted. Restore it, or start another one.")
        raise Invalid(message % {"uid": run.uid}, field="run_id")
    return run


def set_params(run: Run, params: Mapping[str, str]) -> None:
    """Add parameters, which never change; those set by the platform are replaced by the script's own.

    Raises:
        Invalid: a key or a value that is too long, too many, or another value than before.
    """
    if not params:
        return
    for key, value in params.items():
        if not key or len(key) > records.LONGEST_KEY or len(value) > records.LONGEST_TEXT:
            message = _("A parameter name must have 1 to %(key)s characters, its value at most %(text)s.")
            raise Invalid(message % {"key": records.LONGEST_KEY, "text": records.LONGEST_TEXT}, field="key")
    rows = {row.key: row for row in records.rows(run, params)}
    stored = dict(Param.objects.filter(run=run).values_list("key", "text"))
    yielding = _of_platform(run.job)
    for key, row in rows.items():
        if key in stored and stored[key] != row.text and key not in yielding:
            message = _(
                "Changing param values is not allowed. Param with key='%(key)s' was already logged with "
                "value='%(old)s' for run ID='%(uid)s'. Attempted logging new value '%(new)s'."
            )
            facts = {"key": key, "old": stored[key][:250], "uid": run.uid, "new": row.text[:250]}
            raise Invalid(message % facts, field="value")
    if len(set(stored) | set(rows)) > records.MAX_PARAMS:
        raise Invalid(_("A run can have at most %(most)s parameters.") % {"most": records.MAX_PARAMS}, field="params")
    records.set_params(run, params)


def _of_platform(job: Job | None) -> set[str]:
    if job is None:
        return set()
    training = getattr(job, "training", None)
    return {"index"} if training is None else {row.key for row in records.rows(Run(), training.params)}


def set_tags(run: Run, tags: Mapping[str, str]) -> None:
    """Add or change tags. Some of MLflow's own tags set columns of the run.

    Raises:
        Invalid: a key or a value that is too long, or too many.
    """
    for key, value in tags.items():
        if not key or len(key) > records.LONGEST_KEY or len(value) > MAX_TAG_LENGTH:
            message = _("A tag name must have 1 to %(key)s characters, its value at most %(text)s.")
            raise Invalid(message % {"key": records.LONGEST_KEY, "text": MAX_TAG_LENGTH}, field="key")
    stored = {key: value for key, value in tags.items() if key not in {NAME, NOTE, PARENT, USER}}
    there = set(Tag.objects.filter(run=run).values_list("key", flat=True))
    if len(there | set(stored)) > MAX_TAGS:
        raise Invalid(_("A run can have at most %(most)s tags.") % {"most": MAX_TAGS}, field="tags")
    if tags.get(NAME):
        run.name = tags[NAME][:MAX_NAME_LENGTH]
    if NOTE in tags:
        run.notes = tags[NOTE]
    run.save(update_fields=["name", "notes"])
    records.set_tags(run, stored)


def delete_tag(run: Run, key: str) -> None:
    """Remove a tag.

    Raises:
        Missing: the run has none of this name.
    """
    if key == NOTE and run.notes:
        run.notes = ""
        run.save(update_fields=["notes"])
        return
    if not Tag.objects.filter(run=run, key=key).delete()[0]:
        raise refusals.Missing(_("The run has no tag %(name)s.") % {"name": key[:100]})


def add_inputs(run: Run, inputs: list[dict[str, Any]]) -> None:
    """Note on which data a run works, each dataset once."""
    _extend(run, "inputs", inputs, lambda row: (row["dataset"]["name"], row["dataset"]["digest"]))


def add_outputs(run: Run, outputs: list[dict[str, Any]]) -> None:
    """Note which models a run left."""
    _extend(run, "outputs", outputs, lambda row: (row["model_id"], row["step"]))


def _extend(run: Run, column: str, rows: list[dict[str, Any]], key: Any) -> None:
    with transaction.atomic():
        report, _made = Reported.objects.select_for_update().get_or_create(run=run, defaults={"job": run.job})
        merged = {key(row): row for row in [*getattr(report, column), *rows]}
        setattr(report, column, list(merged.values())[:MAX_TAGS])
        report.save(update_fields=[column])


def close_left(limit: int = 500) -> int:
    """End runs that scripts of jobs left running when the jobs were over; returns how many."""
    left = Run.objects.filter(job=None, state=RUNNING, reported__job__ended_at__isnull=False)
    moments = dict(left.values_list("pk", "reported__job__ended_at")[:limit])
    for pk, moment in moments.items():
        Run.objects.filter(pk=pk, state=RUNNING).update(state=STOPPED, ended_at=moment)
    return len(moments)
