"""Save parameters of evaluations under a name, change them, and start evaluations with them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NameTaken, Refusals
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference.evaluation import evaluations
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.models import SPLIT_LABELS, Evaluation, EvaluationSet
from inference.kit.task_kinds import TASKS
from inference.registry.models import ModelVersion
from inference.registry.training_data import AUTO
from training.programs import snapshots
from workers.jobs import resource_request

ABOUT = ("name", "description", "visibility")
MACHINES = ("device_kind", "device_model", "gpus_per_node", "cpus")
REQUEST_FIELDS = ("version", "split", *scripts.FIELDS, *MACHINES)
MAX_CORES, MAX_NAME = 256.0, 50


def from_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Return the settings of an evaluation as a set stores them: GIVEN, `params` and `task`."""
    job = evaluation.job
    return {
        "task": evaluation.task,
        "version": evaluation.version,
        "split": evaluation.split,
        "params": scripts.open_params(evaluation),
        **scripts.from_evaluation(evaluation),
        "device_kind": job.device_kind,
        "device_model": job.device_model,
        "gpus_per_node": job.gpus_per_node,
        "cpus": job.cpus,
    }


def save(*, user: User, name: str, existing: EvaluationSet | None = None, **values: Any) -> EvaluationSet:
    """Save parameters under a name, or change an existing set; fields that are left out are unchanged.

    Args:
        values: description, visibility, `task` of a new set, `params` and GIVEN. `version` None: whoever begins
            with it names one.

    Raises:
        NameTaken: another set of its owner has this name.
        Invalid: a value is out of range, another task than it was made for, or no such visibility; all at once.
    """
    row = existing or EvaluationSet(owner=user, task=values.get("task", ""))
    refusals = Refusals()
    with refusals:
        if not name.strip():
            raise Invalid(_("Enter a name."), field="name")
        check_name(user, name, existing=existing)
    with refusals:
        if values.get("task", row.task) != row.task or row.task not in TASKS:
            raise Invalid(
                _("The task of a parameter set cannot be changed. Available tasks: %(tasks)s.")
                % {"tasks": ", ".join(TASKS)},
                field="task",
            )
    with refusals:
        if values.get("visibility", row.visibility) not in EvaluationSet.Visibility.values:
            raise Invalid(_("Choose one of the available values."), field="visibility")
    script = _script(row, values)
    with refusals:
        row.params = scripts.check(user, script) if script.is_asked else evaluations.checked_parameters(script.params)
    with refusals:
        _check_data(row, values)
    with refusals:
        _check_machines(row, values)
    refusals.end()
    for field in ("description", "visibility", *REQUEST_FIELDS):
        if field in values:
            setattr(row, field, values[field])
    if row.code is not None:  # a set that is changed by another is still its owner's
        row.code = snapshots.copy_for(row.owner, row.code)
    row.name, row.version_label = name, _label(row, values)
    if "image" in values:
        row.image_label = str(row.image or "")[:160]
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise _name_taken() from None
    return row


def _script(row: EvaluationSet, values: Mapping[str, Any]) -> scripts.ScriptRequest:
    """Return the script of a set after the change; without one `params` are those of the platform's evaluator."""
    fields = {name: values.get(name, getattr(row, name)) for name in (*scripts.FIELDS, "params")}
    return scripts.ScriptRequest(**fields)


def _label(row: EvaluationSet, values: Mapping[str, Any]) -> str:
    return row.version_label if "version" not in values else str(row.version)[:80] if row.version else ""


def _check_data(row: EvaluationSet, values: Mapping[str, Any]) -> None:
    version: DatasetVersion | None = values.get("version", row.version)
    split = values.get("split", row.split)
    is_ours = not _script(row, values).is_asked
    if is_ours and version is not None and row.task in TASKS and version.task not in TASKS[row.task].data:
        raise Invalid(
            _("%(version)s has no annotations for evaluating such a model.") % {"version": version}, field="version"
        )
    if split not in (AUTO, *SPLIT_LABELS) and (version is None or not version.splits.get(split)):
        raise Invalid(_("Split “%(split)s” does not exist.") % {"split": split}, field="split")


def _check_machines(row: EvaluationSet, values: Mapping[str, Any]) -> None:
    resources = {name: values.get(name, getattr(row, name)) for name in MACHINES}
    refusals = Refusals()
    with refusals:
        if resources["gpus_per_node"] > evaluations.MAX_GPUS and not _script(row, values).is_asked:
            raise Invalid(_("An evaluation uses at most one GPU."), field="gpus_per_node")
    with refusals:
        if resources["cpus"] is None or not 0 < resources["cpus"] <= MAX_CORES:
            raise Invalid(_("Request more than 0 and at most %(most)s cores.") % {"most": int(MAX_CORES)}, field="cpus")
    with refusals:
        resource_request.check_shape(cast(resource_request.Resources, resources | {"cpus": 1.0}))
    refusals.end()


def submission_fields(row: EvaluationSet, fields: Mapping[str, Any], *, user: User) -> dict[str, Any]:
    """Return the arguments of `evaluations.submit`: the fields of the request, else the values of the set.

    Raises:
        Invalid: the set is for models of another task, or its data was deleted, or the user may not use it.
    """
    model: ModelVersion = fields["model_version"]
    refusals = Refusals()
    with refusals:
        if model.task != row.task:
            raise Invalid(
                _("%(name)s is for models of a different task: %(task)s.")
                % {"name": row.name, "task": row.get_task_display()},
                field="parameter_set",
            )
    version = fields.get("version") or usable_version(row, user)
    with refusals:
        if version is None:
            raise Invalid(_("Specify a dataset: the dataset of %(name)s "
                            "is not accessible to you.") % {"name": row.name},
                          field="version")  # fmt: skip
    with refusals:
        if row.image_label and row.image is None and "image" not in fields:
            message = _("The image %(image)s of %(name)s was deleted. Choose another one.")
            raise Invalid(message % {"image": row.image_label, "name": row.name}, field="image")
    refusals.end()
    saved = visible_values(user, row)
    defaults = {name: saved[name] for name in REQUEST_FIELDS}
    # those of ours mean nothing to a script
    saved_params = saved["params"] if row.is_scripted or not fields.get("start_file") else {}
    return {**defaults, **fields, "version": version, "params": {**saved_params, **fields.get("params", {})}}


def visible_values(user: User, row: EvaluationSet) -> dict[str, Any]:
    """Return GIVEN and `params` of a set for this user: secrets of its script are visible to its owner only."""
    values = {name: getattr(row, name) for name in (*REQUEST_FIELDS, "params")}
    if row.is_scripted and row.owner_id != user.pk:
        values |= {"arguments": scripts.open_words(row.arguments), "params": scripts.open_pairs(row.params)}
    return values


def usable_version(row: EvaluationSet, user: User) -> DatasetVersion | None:
    """Return the data of a set, if this user may use it."""
    version: DatasetVersion | None = DatasetVersion.objects.usable_by(user).filter(pk=row.version_id or 0).first()
    return version


def check_name(user: User, name: str = "", *, existing: EvaluationSet | None = None) -> None:
    """Refuse a name with odd characters, or that another set of the user has, or of the set's owner."""
    if name and (not re.fullmatch(TITLE.regex, name) or len(name) > MAX_NAME):
        raise Invalid(TITLE.message, field="name")
    others = EvaluationSet.objects.filter(owner=existing.owner if existing else user, name=name)
    if (others.exclude(pk=existing.pk) if existing else others).exists():
        raise _name_taken()


def _name_taken() -> NameTaken:
    return NameTaken(_("You already have a parameter set with this name. Choose another name."))
