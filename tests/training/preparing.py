"""What launching asks of the kind `training`, without launching."""

from __future__ import annotations

from training.runs.kind import TrainingKind
from training.runs.models import TrainingJob
from workers.core.kinds import Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir


def prepared(training: TrainingJob, number: int = 1) -> tuple[Launch, RunDir]:
    """The launch and the run directory of an attempt, as launching would ask for them."""
    Job.objects.filter(pk=training.job_id).update(attempt_number=number)
    job = Job.objects.get(pk=training.job_id)
    Attempt.objects.filter(job=job).exclude(number=number).update(ended_at=job.created_at)
    attempt, _made = Attempt.objects.get_or_create(job=job, number=number)
    run = RunDir.for_attempt(job.pk, number)
    run.path.mkdir(parents=True, exist_ok=True)
    return TrainingKind().prepare(job, attempt, run), run
