"""What of some versions and settings cannot become a composed version, all at once, in words."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError, Invalid, Refusals
from inference.kit.model_io.spec import CHAIN, ENSEMBLE
from inference.kit.models.graph_json import FIRST_TASKS, MAX_PARTS, METHODS, MIN_PARTS, SECOND_TASKS
from inference.registry import stages, task_labels
from inference.registry.composition.descriptions import Recipe
from inference.registry.models import ModelVersion

KINDS = (ENSEMBLE, CHAIN)


class CannotCompose(DomainError, code="cannot_compose", field="parts"):
    """These versions do not answer together."""


def check(recipe: Recipe, parts: Sequence[ModelVersion]) -> None:
    """Raise an error for parts whose predictions cannot be combined.

    Raises:
        CannotCompose: the versions do not fit, or one of them cannot be a part.
        Archived: a version is.
        Invalid: a number is out of range.
    """
    refusals = Refusals()
    with refusals:
        if recipe.kind not in KINDS:
            raise Invalid(_("A combined model must be an ensemble or a chain."), field="kind")
    for part in dict.fromkeys(parts):
        with refusals:
            _check_part(part)
    with refusals:
        _check_together(recipe, parts)
    _check_numbers(recipe, parts, refusals)
    refusals.end()


def _check_part(part: ModelVersion) -> None:
    stages.check_in_use(part, field="parts")
    if part.source == ModelVersion.Source.COMPOSED:
        raise CannotCompose(_("%(model)s is itself combined. Choose its parts.") % {"model": part})
    if not part.can_be_evaluated:
        message = _(
            "%(model)s has no ONNX file with a description (model.json), so its predictions cannot be combined."
        )
        raise CannotCompose(message % {"model": part})
    if "tile" in (part.facts.get("input") or {}):
        message = _("%(model)s processes tiles; only models for whole images can be combined.")
        raise CannotCompose(message % {"model": part})


def _check_together(recipe: Recipe, parts: Sequence[ModelVersion]) -> None:
    if recipe.kind == CHAIN:
        _check_chain(recipe, parts)
    if recipe.kind == ENSEMBLE:
        _check_ensemble(recipe, parts)


def _check_ensemble(recipe: Recipe, parts: Sequence[ModelVersion]) -> None:
    if not MIN_PARTS <= len(parts) <= MAX_PARTS or len(set(parts)) < len(parts):
        message = _("An ensemble must have %(fewest)d to %(most)d different parts.") % {
            "fewest": MIN_PARTS,
            "most": MAX_PARTS,
        }
        raise CannotCompose(message)
    first, refusals = parts[0], Refusals()
    task_names = dict(task_labels.choices())
    with refusals:
        if first.task in task_names and first.task not in METHODS:
            message = _("Predictions of the task “%(task)s” cannot be combined. Ensembles support %(tasks)s.")
            supported = ", ".join(str(task_names[task]) for task in METHODS)
            raise CannotCompose(message % {"task": task_names[first.task], "tasks": supported})
    with refusals:
        if others := [str(part) for part in parts if part.task != first.task]:
            message = _("All parts of an ensemble must have the same task; %(others)s differs from %(first)s.")
            raise CannotCompose(message % {"others": ", ".join(others), "first": first})
    for part in parts[1:]:
        with refusals:
            if differing := sorted(_names(part) ^ _names(first)):
                message = _(
                    "All parts of an ensemble must have the same classes; %(one)s and %(other)s differ by %(names)s."
                )
                raise CannotCompose(message % {"one": first, "other": part, "names": ", ".join(differing[:10])})
    with refusals:
        if recipe.way not in METHODS.get(first.task, (recipe.way,)):
            message = _("Predictions of this task can be combined by %(ways)s.") % {
                "ways": ", ".join(METHODS[first.task])
            }
            raise Invalid(message, field="way")
    refusals.end()


def _check_chain(recipe: Recipe, parts: Sequence[ModelVersion]) -> None:
    if len(parts) != 2:
        raise CannotCompose(_("A chain must have two parts: a detector, and a model for the detected objects."))
    first, second = parts
    refusals = Refusals()
    with refusals:
        if first.task not in FIRST_TASKS:
            raise CannotCompose(_("A chain starts with a detector; %(model)s is not a detector.") % {"model": first})
    with refusals:
        if second.task not in SECOND_TASKS:
            message = _("The second part must be a classifier or a tagger; %(model)s is neither.")
            raise CannotCompose(message % {"model": second})
    with refusals:
        if unknown := sorted(set(recipe.only) - _names(first)):
            message = _("%(model)s has no class %(names)s.") % {"model": first, "names": ", ".join(unknown[:10])}
            raise Invalid(message, field="only")
    refusals.end()


def _check_numbers(recipe: Recipe, parts: Sequence[ModelVersion], refusals: Refusals) -> None:
    with refusals:
        if recipe.weights and len(recipe.weights) != len(parts):
            raise Invalid(_("Enter a weight for each part, or none."), field="weights")
    with refusals:
        if any(not 0 < weight <= 1000 for weight in recipe.weights):
            raise Invalid(_("A weight must be greater than 0 and at most 1000."), field="weights")
    for name in ("iou", "margin", "min_score"):
        with refusals:
            if not 0 <= getattr(recipe, name) <= 1:
                raise Invalid(_("Must be between 0 and 1."), field=name)


def _names(version: ModelVersion) -> set[str]:
    return {str(entry["name"]) for entry in version.classes}
