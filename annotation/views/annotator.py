"""The annotator's page and the images it shows."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.templatetags.static import static
from django.urls import reverse

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import needs
from annotation.models import AnnotationSet, ImageTask, LabelClass
from annotation.services import default_labels, pictures, review
from annotation.views.lookup import manages, task_of
from datasets import shapes
from datasets.shapes import ShapeKind


@needs(Action.ANNOTATION_VIEW)
def annotate(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    task = task_of(request.user, project_pk, pk)
    mode = _mode(request, task)
    context = {
        "mode": mode,
        "task": task,
        "set": task.set,
        "project": task.set.project,
        "mine": manages(request.user, task.set.project),
        "kinds": shapes.drawable(),
        "kind_scripts": [_script(kind) for kind in shapes.drawable()],
        "desk": _desk(request, task) | {"mode": mode},
    }
    return render(request, "annotation/annotate.html", context)


def _mode(request: SignedInRequest, task: ImageTask) -> str:
    """Return this person's mode: "view", "draw", or "review", which includes drawing."""
    if not request.user.can(Action.ANNOTATION_ANNOTATE) or not review.draws(request.user, task):
        return "view"
    return "review" if review.reviews(request.user, task) else "draw"


def _desk(request: SignedInRequest, task: ImageTask) -> dict[str, object]:
    """Return the data of the page's scripts: the classes, the image, and the addresses to call."""
    annotation_set: AnnotationSet = task.set
    labels = LabelClass.objects.visible_to(request.user).filter(set=annotation_set, retired=False)
    numbers = ImageTask.objects.visible_to(request.user).filter(set=annotation_set)
    return {
        "user": request.user.pk,
        "task": task.pk,
        "set": annotation_set.pk,
        "count": numbers.count(),
        "keys": request.user.annotator_keys,
        "kinds": [_kind(kind) for kind in shapes.drawable()],
        "label": default_labels.for_user(annotation_set, request.user),
        "labels": list(labels.values("id", "coco_id", "name", "supercategory", "shape", "colour")),
        "api": f"/api/v1/annotation/projects/{annotation_set.project_id}/tasks/",
        "page": reverse("annotation:annotate", args=[annotation_set.project_id, 0]),
        "picture": reverse("annotation:thumbnail", args=[annotation_set.project_id, 0]),
        "list": reverse("annotation:task-list", args=[annotation_set.project_id, annotation_set.pk]),
    }


def _script(kind: ShapeKind) -> str:
    """Static file of the module that draws this kind."""
    return f"annotation/shapes/{kind.tool}.js"


def _kind(kind: ShapeKind) -> dict[str, object]:
    """What the registry says of a kind, and where the module that draws it is."""
    return {
        "name": kind.name,
        "label": str(kind.label),
        "tool": kind.tool,
        "key": kind.key,
        "hint": str(kind.hint),
        "filled": kind.covers_area,
        "module": static(_script(kind)),
    }


@needs(Action.ANNOTATION_VIEW)
def image(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    return pictures.full(task_of(request.user, project_pk, pk))


@needs(Action.ANNOTATION_VIEW)
def thumbnail(request: SignedInRequest, project_pk: int, pk: int) -> HttpResponse:
    return pictures.small(task_of(request.user, project_pk, pk))
