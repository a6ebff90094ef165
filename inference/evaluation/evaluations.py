"""Evaluations: queue, stop, publish figures."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

from django.db import transaction
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from aiplatform.lib import files, titles
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from datasets.models import Dataset, DatasetVersion
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.jobs.submission import MAX_NAME, check_split, check_unseen, finish_checks
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds import TASKS
from inference.registry import training_data
from inference.registry.models import ModelVersion
from inference.registry.training_data import AUTO
from training.programs import snapshots
from training.programs.models import CodeSnapshot
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.images.models import Image
from workers.images.store import compatibility
from workers.jobs import submission
from workers.jobs.resource_request import Resources

KIND = "evaluation"
MAX_GPUS = 1  # of ours; an own script may have more


class CannotEvaluate(DomainError, code="cannot_evaluate"):
    """Model and data do not fit each other."""


@dataclass(frozen=True)
class Parameter:
    """A number that a user may set: lowest, highest, default."""

    low: float
    high: float
    default: float
    is_integer: bool = False


PARAMETERS: Mapping[str, Parameter] = {
    "score_threshold": Parameter(0.0001, 1, 0.01),  # answers below are not kept
    "iou_threshold": Parameter(0.05, 1, 0.5),  # of two boxes of a class overlapping more, one stays
    "max_detections": Parameter(1, 1000, 100, is_integer=True),  # per image
    "batch": Parameter(1, 256, 8, is_integer=True),  # images in one run of the model
    "altered_images": Parameter(0, 5000, 0, is_integer=True),  # judged in altered copies too, 12 or 15 of each
}


def submit(
    *,
    user: User,
    model_version: ModelVersion,
    version: DatasetVersion,
    split: str = "",
    name: str = "",
    params: Mapping[str, Any] | None = None,
    code: CodeSnapshot | None = None,
    start_file: str = "",
    arguments: str = "",
    output_path: str = "",
    image: Image | None = None,
    **resources: Unpack[Resources],
) -> Evaluation:
    """Queue an evaluation.

    Args:
        split: train, val or test; empty: all images; `ground_truth.UNSEEN`: those that the model did not learn from;
            `training_data.AUTO`: what `best_split` returns.
        name: empty makes one of model and dataset.
        params: see PARAMETERS; omitted ones have their defaults. All parameters of a custom script.
        code, start_file, arguments, output_path, image: a custom script that evaluates instead of the built-in one, see
            `scripted.ScriptRequest`; where one of them is given, `code` and `start_file` are.
        resources: requested resources; without a cluster the user's current one.

    Raises:
        CannotEvaluate: the model cannot answer, the data is not annotated, or their tasks differ.
        VersionNotReady, BadStartFile, BadParameter: of an own script, see `scripted.check`.
        Invalid: a value is out of range.
        NotAMember: the user is not a member of the cluster.
    """
    script = scripts.ScriptRequest(
        code=code, start_file=start_file, arguments=arguments, output_path=output_path, image=image, params=params or {}
    )
    if split == AUTO:
        split = best_split(user, model_version, version, is_scripted=script.is_asked)
    name = name or name_for(model_version, version)
    checked, resources = _check_submission(user, model_version, version, split, name, script, resources)
    if script.code is not None:
        script = replace(script, code=snapshots.copy_for(user, script.code))  # a set that is shared brings its owner's
    spec: dict[str, Any] = {
        "model_version": model_version.pk, "version": version.pk, "split": split, "params": checked,
    }  # fmt: skip
    spec |= scripts.spec(script, checked) if script.is_asked else {}
    with transaction.atomic():
        job = submission.submit(owner=user, kind=KIND, name=name, spec=spec, **resources)
        evaluation = Evaluation.objects.create(
            job=job,
            model_version=model_version,
            model_label=str(model_version)[:120],
            version=version,
            version_label=str(version)[:80],
            split=split,
            task=model_version.task,
            params=checked,
            is_scripted=script.is_asked,
        )
        if script.is_asked:
            scripts.create(evaluation, script)
        return evaluation


def _check_submission(
    user: User,
    model: ModelVersion,
    version: DatasetVersion,
    split: str,
    name: str,
    script: scripts.ScriptRequest,
    resources: Resources,
) -> tuple[dict[str, Any], Resources]:
    """Check everything that `submit` refuses, at once; returns all parameters and the requested resources."""
    refusals, params = Refusals(), dict[str, Any]()
    with refusals:
        if script.is_asked:
            scripts.check_data(user, version, split)
            check_split(version, split)
        else:
            _check_ours(user, model, version, split, resources)
    with refusals:
        params = scripts.check(user, script) if script.is_asked else checked_parameters(script.params)
    resources["needs"] = compatibility.needs_of(script.image).as_row()
    resources = finish_checks(refusals, user=user, kind=KIND, name=name, resources=resources)
    return params, resources


def best_split(user: User, model: ModelVersion, version: DatasetVersion, *, is_scripted: bool) -> str:
    """Return the most informative split for a model; a custom script does not know the training data."""
    return scripts.best_split(version) if is_scripted else training_data.best_split(model, version, user=user)


def _check_ours(user: User, model: ModelVersion, version: DatasetVersion, split: str, resources: Resources) -> None:
    """Check that the platform's evaluator supports it."""
    refusals = Refusals()
    with refusals:
        check_fit(model, version, split)
    with refusals:
        check_unseen(model, split, user)
    with refusals:
        if resources.get("gpus_per_node", 0) > MAX_GPUS:
            raise Invalid(_("An evaluation uses at most one GPU."), field="gpus_per_node")
    refusals.end()


def check(
    *,
    model_version: ModelVersion | None = None,
    version: DatasetVersion | None = None,
    split: str = "",
    start_file: str = "",
    arguments: str = "",
    output_path: str = "",
) -> None:
    """Check model, data, split, and the fields of a custom script before `submit`."""
    refusals = Refusals()
    with refusals:
        if model_version is not None and version is not None and not start_file:
            check_fit(model_version, version, "" if split == AUTO else split)
    with refusals:
        scripts.check_parts(arguments=arguments, output_path=output_path)
    refusals.end()


def check_fit(model_version: ModelVersion, version: DatasetVersion, split: str) -> None:
    """Check that the model can be evaluated on the data.

    Raises:
        CannotEvaluate, Invalid.
    """
    refusals = Refusals()
    with refusals:
        if not model_version.can_be_evaluated:
            raise CannotEvaluate(
                _("%(model)s has no model.json, so its predictions cannot be evaluated.") % {"model": model_version},
                field="model_version",
            )
    with refusals:
        if not version.annotated or not version.is_ready:
            raise CannotEvaluate(
                _("%(version)s is not annotated, so nothing can be evaluated on it.") % {"version": version},
                field="version",
            )
        check_split(version, split)
    with refusals:
        if not refusals:
            _check_alike(model_version, version)
    refusals.end()


def _check_alike(model_version: ModelVersion, version: DatasetVersion) -> None:
    if version.task not in TASKS[model_version.task].data:
        raise CannotEvaluate(
            _("A %(model)s model cannot be evaluated on a dataset for %(data)s.")
            % {"model": model_version.get_task_display().lower(), "data": version.get_task_display().lower()},
            field="version",
        )
    shared = {c["name"].strip().lower() for c in model_version.classes} & {
        c["name"].strip().lower() for c in version.classes
    }
    if not shared:
        raise CannotEvaluate(_("The model and the dataset have no class name in common."), field="version")


def checked_parameters(values: Mapping[str, Any]) -> dict[str, float]:
    """Return all parameters with their values.

    Raises:
        Invalid: an unknown name, no number, or out of range.
    """
    refusals, checked = Refusals(), {}
    for name in values:
        with refusals:
            if name not in PARAMETERS:
                names = ", ".join(PARAMETERS)
                raise Invalid(
                    _("Unknown parameter “%(name)s”. Available parameters: %(known)s.") % {"name": name, "known": names}
                )
    for name, parameter in PARAMETERS.items():
        with refusals:
            checked[name] = _number(name, parameter, values.get(name))
    refusals.end()
    return checked


def _number(name: str, parameter: Parameter, value: Any) -> float:
    try:
        number = parameter.default if value in (None, "") else float(value)
    except (TypeError, ValueError):
        raise Invalid(_("%(name)s must be a number.") % {"name": name}, field=name) from None
    if not parameter.low <= number <= parameter.high:
        raise Invalid(
            _("%(name)s must be from %(low)s to %(high)s.")
            % {"name": name, "low": parameter.low, "high": parameter.high},
            field=name,
        )
    return int(number) if parameter.is_integer else number


def name_for(model_version: ModelVersion, version: DatasetVersion) -> str:
    """A name such as cells_v2_on_bccd_v1."""
    return titles.derive_name(f"{model_version} on {version}", room=MAX_NAME)


def publish(job: Job, attempt: Attempt) -> None:
    """Store the metrics of an attempt; idempotent."""
    evaluation = Evaluation.objects.filter(job=job).first()
    if evaluation is None or attempt.number < evaluation.published_attempt:
        return
    if evaluation.is_scripted:
        scripts.publish(evaluation, attempt)
        return
    try:
        with os.fdopen(
            files.open_beneath(RunDir.for_attempt(job.pk, attempt.number).outputs, "evaluation.json"), "rb"
        ) as file:
            content = json.load(file)
        summary = {str(k): float(v) for k, v in content["summary"].items() if isinstance(v, int | float)}
        if isinstance(training_images := content.get("seen"), int):
            summary["images_seen"] = float(training_images)
    except (OSError, ValueError, KeyError, AttributeError, files.OutsideRoot):
        return  # it ended before it could judge
    evaluation.metrics = summary
    evaluation.published_attempt = attempt.number
    evaluation.save(update_fields=["metrics", "published_attempt"])


def list_evaluations(user: User, dataset: Dataset) -> list[tuple[str, str]]:
    """Return a link to the evaluations that a user may see on a dataset; none without any."""
    count = Evaluation.objects.visible_to(user).filter(version__dataset=dataset).count()
    text = ngettext("%(count)s evaluation", "%(count)s evaluations", count) % {"count": count}
    return [(text, f"{reverse('inference:evaluation-list')}?{urlencode({'q': dataset.name})}")] if count else []


def using(version: DatasetVersion) -> list[str]:
    """List evaluations that still need a dataset version."""
    running = Evaluation.objects.unfinished().filter(version=version).select_related("job")
    return [_("evaluation %(name)s") % {"name": evaluation.job.name} for evaluation in running]
