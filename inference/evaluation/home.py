"""Sections of the home page about results: finished runs and evaluations, the best model of each dataset."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.pages.home.sections import Section
from inference.evaluation.models import Evaluation
from inference.registry.metric_labels import key_metric
from training.catalog.key_metrics import KeyMetric
from training.runs import results
from training.runs.models import TrainingJob
from training.runs.querysets import LOOKS
from workers.core import kinds
from workers.core.models import Job
from workers.core.states import COMPLETED, FINAL
from workers.jobs.output.sparklines import sparklines

MAX_RESULTS = 6
MAX_DATASETS = 5
MAX_READ = 200  # newest evaluations that are compared
SPLIT_RANKS = {"test": 3, "unseen": 2, "val": 1}  # others may have been trained on
KINDS = ("training", "evaluation")


@dataclass(frozen=True)
class Result:
    """A finished run with its key metric and the curve of that metric."""

    job: Job
    url: str
    icon: str
    subject: str  # what it was trained or evaluated on
    metric: KeyMetric | None
    line: str = ""


def latest_results(user: User) -> dict[str, Any] | None:
    """Return the newest finished trainings and evaluations of the user: {rows}."""
    jobs = Job.objects.filter(owner=user, kind__in=KINDS, state__in=FINAL)
    jobs = jobs.select_related("training", "evaluation").order_by("-pk")[: 2 * MAX_RESULTS]
    shown = [job for job in jobs if not _is_preview(job)][:MAX_RESULTS]
    keys = {job.pk: key for job in shown if (key := _curve_key(job))}
    lines = sparklines(keys) if keys else {}
    rows = [_result(job, lines.get(job.pk, "")) for job in shown if kinds.url_of(job)]
    return {"rows": rows} if rows else None


def _is_preview(job: Job) -> bool:
    training: TrainingJob | None = getattr(job, "training", None)
    return training is not None and any(name in training.extra for name in LOOKS)


def _curve_key(job: Job) -> str:
    training: TrainingJob | None = getattr(job, "training", None)
    return results.metric_key(training)[0] if training else ""


def _result(job: Job, line: str) -> Result:
    if job.kind == "evaluation":
        evaluation: Evaluation = job.evaluation
        subject = f"{evaluation.model_label} · {evaluation.version_label}"
        metric = key_metric(evaluation.task, evaluation.metrics, evaluation.split)
    else:
        training: TrainingJob = job.training
        subject, metric = training.version_label, results.key_metric(training)
    shown = metric if job.state in COMPLETED else None  # the row of a failed run shows its state
    return Result(job, kinds.url_of(job), kinds.icon_of(job.kind), subject, shown, line)


@dataclass(frozen=True)
class Best:
    """The model version with the highest key metric on a dataset."""

    dataset: str
    model: str
    url: str
    metric: KeyMetric | None
    split: Any
    at: datetime | None


def best_models(user: User) -> dict[str, Any] | None:
    """Return the best evaluated model of each dataset and task, most recently evaluated datasets first: {rows}.

    An evaluation on the test split precedes any on the validation split, and this one any on data of the training.
    """
    evaluations = (
        Evaluation.objects.visible_to(user)
        .filter(published_attempt__gt=0, is_scripted=False, version__isnull=False, model_version__isnull=False)
        .select_related("version__dataset", "model_version__model", "job")
        .only(
            "task", "split", "metrics", "version__dataset__name", "model_version__number",
            "model_version__model__name", "job__ended_at",
        )
        .order_by("-pk")[:MAX_READ]
    )  # fmt: skip
    best: dict[tuple[int, str], tuple[int, float, Evaluation]] = {}
    for evaluation in evaluations:
        metric = key_metric(evaluation.task, evaluation.metrics)
        key = (evaluation.version.dataset_id, evaluation.task)
        rank = SPLIT_RANKS.get(evaluation.split, 0)
        if metric is not None and (key not in best or (rank, metric.value) > best[key][:2]):
            best[key] = (rank, metric.value, evaluation)
    rows = [_best(evaluation) for _rank, _value, evaluation in list(best.values())[:MAX_DATASETS]]
    return {"rows": rows} if rows else None


def _best(evaluation: Evaluation) -> Best:
    model, version = evaluation.model_version, evaluation.version
    assert model is not None  # both are required by the query
    assert version is not None
    return Best(
        dataset=version.dataset.name,
        model=str(model),
        url=f"{reverse('inference:model-detail', args=[model.model_id])}?version={model.number}",
        metric=key_metric(evaluation.task, evaluation.metrics),
        split=evaluation.split_word,
        at=evaluation.job.ended_at,
    )


RESULTS = Section("results", "home/_results.html", latest_results, needs=Action.TRAINING_VIEW, order=40, live=True)
BEST_MODELS = Section("best", "home/_best_models.html", best_models, needs=Action.EVALUATIONS_VIEW, order=50)
