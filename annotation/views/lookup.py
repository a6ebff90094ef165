"""Find the object of a page; what a person cannot see does not exist for them."""

from __future__ import annotations

from collections.abc import Collection

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib.errors import NotAllowed
from annotation.models import AnnotationProject, AnnotationSet, ImageTask


def project_of(user: User, pk: int, *, manage: bool = False) -> AnnotationProject:
    """Return a project this person sees; with `manage`, one they may change (403 for the others)."""
    project: AnnotationProject = get_object_or_404(AnnotationProject.objects.visible_to(user), pk=pk)
    if manage and not manages(user, project):
        raise NotAllowed(_("Only the owner and the managers of the project can do this."))
    return project


def manages(user: User, project: AnnotationProject) -> bool:
    """Whether this person may change the project, not only draw in it."""
    if not user.can(Action.ANNOTATION_MANAGE):
        return False
    return project.owner_id == user.pk or project.pk in managed(user, [project])


def managed(user: User, projects: Collection[AnnotationProject]) -> set[int]:
    """Ids of those of `projects` that this person may change, in one query."""
    if not user.can(Action.ANNOTATION_MANAGE):
        return set()
    rows = AnnotationProject.objects.editable_by(user).filter(pk__in=[project.pk for project in projects])
    return set(rows.values_list("pk", flat=True))


def set_of(user: User, project: AnnotationProject, pk: int) -> AnnotationSet:
    rows = AnnotationSet.objects.visible_to(user).filter(project=project).for_list()
    annotation_set: AnnotationSet = get_object_or_404(rows, pk=pk)
    return annotation_set


def task_of(user: User, project_pk: int, pk: int) -> ImageTask:
    rows = ImageTask.objects.visible_to(user).filter(set__project=project_pk)
    task: ImageTask = get_object_or_404(rows.select_related("asset__version", "set__project", "set__source"), pk=pk)
    return task
