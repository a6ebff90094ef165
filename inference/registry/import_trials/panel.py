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
from inference.registry.import_trials.results import Found, Row, Tried
from inference.registry.models import ModelTask, ModelVersion
from workers.core.models import Job
from workers.core.runs import RunDir
from workers.jobs.job_page import Panel


def context(job: Job, user: User) -> dict[str, Any] | None:
    """None while nothing is known of its end."""
    if job.kind != model_jobs.KIND:
        return None
    task = ModelTask.objects.filter(job=job, act=ModelTask.Act.TRY).select_related("job__owner", "made__model").first()
    if task is None or not (task.figures or task.message):
        return None
    found = found_of(task)
    mine = ModelTask.objects.editable_by(user).filter(pk=task.pk).exists()
    named = bool(trials.declared_of(task).labels)
    return {
        "task": task,
        "message": task.message if task.made_id is None else wording.Message(),
        "ways": [_way(task, found, *pair) for pair in zip(found.best, _declared(task, found), strict=True)],
        "with_truth": found.with_truth,
        "tried": found.tried,
        "fallen": [{"word": labels.why(code), "count": count} for code, count in sorted(found.counts().items())],
        "can_use": mine and user.can(Action.MODELS_MANAGE) and task.made_id is None and bool(found.best),
        "name": "" if job.spec["model"] else job.spec["name"],
        "numbered": not named,
        "made": _made(task, user),
        "again": _again(job),
    }


def found_of(task: ModelTask) -> Found:
    """What the attempt left that was published."""
    outputs = RunDir.for_attempt(task.job_id, task.figures.get("attempt") or task.job.attempt_number).outputs
    return results.read(outputs, ways=len(task.job.spec["ways"]))


def _declared(task: ModelTask, found: Found) -> list[Declared]:
    ways = trials.ways_of(task)
    return [ways[one.number] for one in found.best]


def _way(task: ModelTask, found: Found, tried: Tried, way: Declared) -> dict[str, Any]:
    placed = prediction_shapes.draft_of(way.task) == SHAPES
    return {
        "rank": found.best.index(tried) + 1,
        "title": labels.title(way),
        "about": labels.about(way),
        "percent": round(100 * tried.score),
        "cards": [
            _card(task, place, picture, tried.answers[place], placed=placed)
            for place, picture in enumerate(found.pictures)
        ],
    }


def _card(task: ModelTask, place: int, picture: Row, answers: list[Row], *, placed: bool) -> dict[str, Any]:
    line = {**picture, "n": place, "path": picture["name"], "predictions": answers}
    kinds = sorted({kind for one in answers if isinstance(kind := one.get("class_id"), int)})
    drawn = prediction_cards.card(line, {kind: kind for kind in kinds}, placed=placed)
    truth = [
        {"x": f"{box[0]:g}", "y": f"{box[1]:g}", "w": f"{box[2] - box[0]:g}", "h": f"{box[3] - box[1]:g}", **one}
        for one in picture["truth"]
        if (box := prediction_shapes.box_of(one, picture["width"], picture["height"]))
    ]
    return drawn | {"truth": truth, "label": picture["label"], "url": _picture(task, place)}


def _picture(task: ModelTask, place: int) -> str:
    return reverse("inference:trial-picture", args=[task.pk, place])


def _made(task: ModelTask, user: User) -> dict[str, str] | None:
    version = ModelVersion.objects.visible_to(user).select_related("model").filter(pk=task.made_id or 0).first()
    if version is None:
        return None
    page = reverse("inference:model-detail", args=[version.model_id])
    return {"name": str(version), "url": f"{page}?version={version.number}"}


def _again(job: Job) -> str:
    model = job.spec.get("model")
    return reverse("inference:model-detail", args=[model]) if model else reverse("inference:model-upload")


PANEL = Panel("model-trial", "inference/_trial_panel.html", context, 2)
