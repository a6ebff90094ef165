"""The first-run guide: the steps from code to an endpoint, marked completed by what is there.

Steps of this module are about objects; kinds of jobs with `step` add their own (training, evaluation, endpoints).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext_lazy as _

from accounts.access.permissions import Action
from accounts.models import User
from accounts.models.people import Guide
from aiplatform.frame.navigation import exists
from aiplatform.lib.registry import Slot
from aiplatform.pages.home.sections import Section
from annotation.models import AnnotationProject
from datasets.models import Dataset, DatasetVersion
from inference.registry.models import Model
from training.environments.models import Environment
from workers.core.kinds import KINDS, JobKind

MIN_STEPS = 3  # fewer are no workflow: an annotator has a list of images to continue with


@dataclass(frozen=True)
class Samples:
    """Ids of objects that were loaded as samples: they complete no step."""

    datasets: Collection[int] = field(default_factory=set)
    models: Collection[int] = field(default_factory=set)
    jobs: Collection[int] = field(default_factory=set)


#: Returns the samples of a user; provided by the package of the sample project.
SAMPLES: Slot[Callable[[User], Samples]] = Slot("samples of the guide")


@dataclass(frozen=True)
class Start:
    """The page where a step starts."""

    label: Any
    path: str
    needs: Action
    is_possible: Callable[[User], bool] = lambda user: True  # whether its inputs are there


@dataclass(frozen=True)
class Step:
    """A step of the workflow; `is_done` tells by rows of the database, without samples, whether it is completed."""

    label: Any
    hint: Any
    icon: str
    path: str
    needs: Action
    is_done: Callable[[User, Samples], bool]
    order: int
    start: Start | None = None
    optional: bool = False  # never the current step


def _has_annotated(user: User, samples: Samples) -> bool:
    versions = DatasetVersion.objects.visible_to(user).exclude(dataset__in=samples.datasets)
    return versions.filter(annotated=True).exists() or AnnotationProject.objects.visible_to(user).exists()


def _has_images(user: User) -> bool:
    return DatasetVersion.objects.visible_to(user).filter(state=DatasetVersion.State.READY).exists()


STEPS = (
    Step(
        _("Code"), _("Write code in JupyterLab or VS Code"), "environments", "/environments/", Action.JOBS_VIEW,
        lambda user, samples: Environment.objects.filter(job__owner=user).exists(), order=10, optional=True,
        start=Start(_("Create workspace"), "/environments/new/", Action.JOBS_SUBMIT),
    ),
    Step(
        _("Data"), _("Upload images, with or without labels"), "datasets", "/datasets/", Action.DATASETS_VIEW,
        lambda user, samples: Dataset.objects.visible_to(user).exclude(pk__in=samples.datasets).exists(), order=20,
        start=Start(_("Create dataset"), "/datasets/new/", Action.DATASETS_CREATE),
    ),
    Step(
        _("Annotation"), _("Label the images"), "annotation", "/annotation/", Action.ANNOTATION_VIEW,
        _has_annotated, order=30,
        start=Start(_("Annotate images"), "/annotation/projects/new/", Action.ANNOTATION_MANAGE, _has_images),
    ),
    Step(
        _("Models"), _("Trained models appear in the registry"), "models", "/models/", Action.MODELS_VIEW,
        lambda user, samples: Model.objects.visible_to(user).exclude(pk__in=samples.models).exists(), order=50,
    ),
)  # fmt: skip


def _step_of_kind(kind: JobKind) -> Step:
    start = None
    if kind.start_page:
        start = Start(kind.start_word, kind.start_path(), kind.submit_action, kind.startable)

    def is_done(user: User, samples: Samples) -> bool:
        return kind.has_jobs_of(user, without=samples.jobs)

    label, path = kind.step_label or kind.plural_label(), kind.list_path()
    return Step(label, kind.hint, kind.icon, path, kind.view_action, is_done, kind.order, start)


def list_steps(user: User) -> list[Step]:
    """Return the steps that a user may see, in their order."""
    of_kinds = (_step_of_kind(kind) for kind in KINDS if kind.step and kind.list_path())
    steps = sorted((*STEPS, *of_kinds), key=lambda step: step.order)
    return [step for step in steps if user.can(step.needs) and exists(step.path)]


def guide_of(user: User) -> dict[str, Any] | None:
    """Return the steps and the current one: {steps: [{step, done, current}], current, start, done, total}.

    The current step is the first one that is required and not done; `start` is its page, or None while its inputs
    are missing or the user may not start it. None for users without a workflow, who dismissed the guide, or are done,
    and for operators of a platform with other users unless they requested it.
    """
    if user.guide == Guide.HIDDEN or _is_operator_of_others(user):
        return None
    steps = list_steps(user)
    if len(steps) < MIN_STEPS or not any(step.start and user.can(step.start.needs) for step in steps):
        return None
    find_samples = SAMPLES.get()
    samples = find_samples(user) if find_samples else Samples()
    done = {step: step.is_done(user, samples) for step in steps}
    current = next((step for step in steps if not done[step] and not step.optional), None)
    if current is None and user.guide != Guide.SHOWN:
        return None
    start = current.start if current else None
    if start and not (user.can(start.needs) and start.is_possible(user)):
        start = None
    return {
        "steps": [{"step": step, "done": done[step], "current": step is current} for step in steps],
        "current": current,
        "start": start,
        "done": sum(done.values()),
        "total": len(steps),
    }


def _is_operator_of_others(user: User) -> bool:
    """Whether the user runs the platform for others; the guide is for those who train, the first user included."""
    if user.guide == Guide.SHOWN or not user.can(Action.CLUSTER_MANAGE):
        return False
    return User.objects.filter(is_active=True).exclude(pk=user.pk).exists()


def set_guide(user: User, value: Guide) -> None:
    """Hide the guide, or show it again."""
    User.objects.filter(pk=user.pk).update(guide=value)
    user.guide = value


GUIDE = Section("guide", "home/_guide.html", guide_of, needs=Action.OVERVIEW_VIEW, order=10, column="top")
