"""Register the model that a training left when it ended well."""

from __future__ import annotations

from django.urls import reverse

from inference.registry import lineage
from inference.registry import registration as registry
from inference.registry.models import ModelVersion
from training.runs.models import TrainingJob
from training.runs.publishers import Result
from workers.core.runs import RunDir


def keep_model(training: TrainingJob) -> ModelVersion | None:
    """Register the outputs/model of the newest attempt; may be called again for the same attempt."""
    job = training.job
    return registry.register_training(
        job=job,
        attempt=job.attempt_number,
        folder=RunDir.for_attempt(job.pk, job.attempt_number).outputs / "model",
        dataset_version=training.version,
        dataset_label=training.version_label,
        code_label=training.preset or (training.code.origin if training.code else ""),
        description=training.description,
        begun=lineage.training_columns(training.params),
    )


def result(training: TrainingJob) -> Result | None:
    """Return page and deployment of the model version that the training left last."""
    version = ModelVersion.objects.filter(job=training.job_id).order_by("-pk").first()
    if version is None:
        return None
    page = f"{reverse('inference:model-detail', args=[version.model_id])}?version={version.number}"
    deployable = version.can_serve and not version.is_archived
    return Result(page, f"{reverse('inference:service-new')}?model_version={version.pk}" if deployable else "")
