"""What the page of a trial shows: the best ways side by side, each with its answers drawn over the pictures."""

from __future__ import annotations

from typing import Any

from django.urls import reverse

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from inference.kit.contracts.served_task import SHAPES
from inference.registry import model_jobs, prediction_cards, prediction_shapes
from inference.registry.formats.declared import Declared
from inference.registry.import_trials import labels, results, trials
from inference.registry.import_trials.results import RankedVariant, Row, TrialResult
from inference.registry.models import ModelTask, ModelVersion
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.jobs.job_page import Panel


def context(job: Job, user: User) -> dict[str, Any] | None:
    """Return the context of the panel; None until the job has a result."""
    if job.kind != model_jobs.KIND:
        return None
    task = ModelTask.objects.filter(job=job, act=ModelTask.Act.TRY).select_related("job__owner", "made__model").first()
    if task is None or not (task.figures or task.message):
        return None
    result = found_of(task)
    is_editable = ModelTask.objects.editable_by(user).filter(pk=task.pk).exists()
    named = bool(trials.declared_of(task).labels)
    return {
        "task": task,
        "message": task.message if task.made_id is None else wording.Message(),
        "ways": [_way(task, result, *pair) for pair in zip(result.best, _declarations(task, result), strict=True)],
        "with_truth": result.with_truth,
        "tried": result.tried,
        "fallen": [{"word": labels.why(code), "count": count} for code, count in sorted(result.counts().items())],
        "can_use": is_editable and user.can(Action.MODELS_MANAGE) and task.made_id is None and bool(result.best),
        "name": "" if job.spec["model"] else job.spec["name"],
        "numbered": not named,
        "made": _created_version(task, user),
        "again": _again(job),
    }


def found_of(task: ModelTask) -> TrialResult:
    """What the attempt left that was published."""
    outputs = RunDir.for_attempt(task.job_id, task.figures.get("attempt") or task.job.attempt_number).outputs
    return results.read(outputs, ways=len(task.job.spec["ways"]))


def _declarations(task: ModelTask, result: TrialResult) -> list[Declared]:
    declarations = trials.ways_of(task)
    return [declarations[variant.number] for variant in result.best]


def _way(task: ModelTask, result: TrialResult, tried: RankedVariant, declaration: Declared) -> dict[str, Any]:
    placed = prediction_shapes.draft_of(declaration.task) == SHAPES
    return {
        "rank": result.best.index(tried) + 1,
        "title": labels.title(declaration),
        "about": labels.describe(declaration),
        "percent": round(100 * tried.score),
        "cards": [
            _card(task, index, picture, tried.answers[index], placed=placed)
            for index, picture in enumerate(result.pictures)
        ],
    }


def _card(task: ModelTask, index: int, picture: Row, answers: list[Row], *, placed: bool) -> dict[str, Any]:
    line = {**picture, "n": index, "path": picture["name"], "predictions": answers}
    drawn = prediction_cards.card(line, {}, placed=placed)
    truth = [
        {"x": f"{box[0]:g}", "y": f"{box[1]:g}", "w": f"{box[2] - box[0]:g}", "h": f"{box[3] - box[1]:g}", **item}
        for item in picture["truth"]
        if (box := prediction_shapes.box_of(item, picture["width"], picture["height"]))
    ]
    return drawn | {"truth": truth, "label": picture["label"], "url": _picture(task, index)}


def _picture(task: ModelTask, index: int) -> str:
    return reverse("inference:trial-picture", args=[task.pk, index])


def _created_version(task: ModelTask, user: User) -> dict[str, str] | None:
    version = ModelVersion.objects.visible_to(user).select_related("model").filter(pk=task.made_id or 0).first()
    if version is None:
        return None
    page = reverse("inference:model-detail", args=[version.model_id])
    return {"name": str(version), "url": f"{page}?version={version.number}"}


def _again(job: Job) -> str:
    model = job.spec.get("model")
    return reverse("inference:model-detail", args=[model]) if model else reverse("inference:model-upload")


PANEL = Panel("model-trial", "inference/_trial_panel.html", context, 2)
