"""Register the model that a training left when it ended well."""

from __future__ import annotations

from django.urls import reverse

from inference.registry import lineage
from inference.registry import registration as registry
from inference.registry.models import ModelVersion
from training.runs.models import TrainingJob
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


def model_page(training: TrainingJob) -> str:
    """Page of the model version the training left last; "" where there is none."""
    made = ModelVersion.objects.filter(job=training.job_id).order_by("-pk").first()
    return f"{reverse('inference:model-detail', args=[made.model_id])}?version={made.number}" if made else ""
