"""Keep parameters of evaluations under a name, change them, and begin evaluations with them."""

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
from inference.evaluation.models import SPLIT_WORDS, Evaluation, EvaluationSet
from inference.kit.task_kinds import TASKS
from inference.registry.models import ModelVersion
from inference.registry.training_data import AUTO
from training.programs import snapshots
from workers.jobs import resource_request

ABOUT = ("name", "description", "visibility")
MACHINES = ("device_kind", "device_model", "gpus_per_node", "cpus")
GIVEN = ("version", "split", *scripts.FIELDS, *MACHINES)
MOST_CORES, MAX_NAME = 256.0, 50


def of(evaluation: Evaluation) -> dict[str, Any]:
    """What an evaluation was begun with, as a set keeps it: GIVEN, `params` and `task`."""
    job = evaluation.job
    return {
        "task": evaluation.task,
        "version": evaluation.version,
        "split": evaluation.split,
        "params": scripts.open_params(evaluation),
        **scripts.of(evaluation),
        "device_kind": job.device_kind,
        "device_model": job.device_model,
        "gpus_per_node": job.gpus_per_node,
        "cpus": job.cpus,
    }


def save(*, user: User, name: str, existing: EvaluationSet | None = None, **given: Any) -> EvaluationSet:
    """Keep parameters under a name, or change an existing set; what is left out of one stays.

    Args:
        given: description, visibility, `task` of a new set, `params` and GIVEN. `version` None: whoever begins
            with it names one.

    Raises:
        NameTaken: another set of its owner has this name.
        Invalid: a value is out of range, another task than it was made for, or no such visibility; all at once.
    """
    row = existing or EvaluationSet(owner=user, task=given.get("task", ""))
    found = Refusals()
    with found:
        if not name.strip():
            raise Invalid(_("Give a name."), field="name")
        check_name(user, name, existing=existing)
    with found:
        if given.get("task", row.task) != row.task or row.task not in TASKS:
            raise Invalid(
                _("A set keeps its task. The tasks are: %(tasks)s.") % {"tasks": ", ".join(TASKS)}, field="task"
            )
    with found:
        if given.get("visibility", row.visibility) not in EvaluationSet.Visibility.values:
            raise Invalid(_("Choose one of the given values."), field="visibility")
    script = _script(row, given)
    with found:
        row.params = scripts.check(user, script) if script.is_asked else evaluations.checked_parameters(script.params)
    with found:
        _check_data(row, given)
    with found:
        _check_machines(row, given)
    found.end()
    for field in ("description", "visibility", *GIVEN):
        if field in given:
            setattr(row, field, given[field])
    if row.code is not None:  # a set that is changed by another is still its owner's
        row.code = snapshots.copy_for(row.owner, row.code)
    row.name, row.version_label = name, _label(row, given)
    if "image" in given:
        row.image_label = str(row.image or "")[:160]
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError:
        raise _taken() from None
    return row


def _script(row: EvaluationSet, given: Mapping[str, Any]) -> scripts.ScriptRequest:
    """The script of a set as it will be; without one `params` are those of ours."""
    named = {name: given.get(name, getattr(row, name)) for name in (*scripts.FIELDS, "params")}
    return scripts.ScriptRequest(**named)


def _label(row: EvaluationSet, given: Mapping[str, Any]) -> str:
    return row.version_label if "version" not in given else str(row.version)[:80] if row.version else ""


def _check_data(row: EvaluationSet, given: Mapping[str, Any]) -> None:
    version: DatasetVersion | None = given.get("version", row.version)
    split = given.get("split", row.split)
    is_ours = not _script(row, given).is_asked
    if is_ours and version is not None and row.task in TASKS and version.task not in TASKS[row.task].data:
        raise Invalid(
            _("%(version)s has no annotations that such a model is judged on.") % {"version": version}, field="version"
        )
    if split not in (AUTO, *SPLIT_WORDS) and (version is None or not version.splits.get(split)):
        raise Invalid(_("There is no split “%(split)s”.") % {"split": split}, field="split")


def _check_machines(row: EvaluationSet, given: Mapping[str, Any]) -> None:
    named = {name: given.get(name, getattr(row, name)) for name in MACHINES}
    found = Refusals()
    with found:
        if named["gpus_per_node"] > evaluations.MOST_CARDS and not _script(row, given).is_asked:
            raise Invalid(_("An evaluation uses one card at most."), field="gpus_per_node")
    with found:
        if named["cpus"] is None or not 0 < named["cpus"] <= MOST_CORES:
            raise Invalid(
                _("Ask for more than 0 and at most %(most)s cores.") % {"most": int(MOST_CORES)}, field="cpus"
            )
    with found:
        resource_request.check_shape(cast(resource_request.Resources, named | {"cpus": 1.0}))
    found.end()


def begin_with(row: EvaluationSet, given: Mapping[str, Any], *, user: User) -> dict[str, Any]:
    """Arguments of `evaluations.submit`: what is given, else what the set says.

    Raises:
        Invalid: the set is for models of another task, or its data is gone or not this person's to use.
    """
    model: ModelVersion = given["model_version"]
    found = Refusals()
    with found:
        if model.task != row.task:
            raise Invalid(
                _("%(name)s is for models of another task: %(task)s.")
                % {"name": row.name, "task": row.get_task_display()},
                field="parameter_set",
            )
    version = given.get("version") or usable_version(row, user)
    with found:
        if version is None:
            raise Invalid(_("Name a dataset: the one of %(name)s is not there for you.") % {"name": row.name},
                          field="version")  # fmt: skip
    with found:
        if row.image_label and row.image is None and "image" not in given:
            said = _("The image %(image)s of %(name)s was deleted. Name another one.")
            raise Invalid(said % {"image": row.image_label, "name": row.name}, field="image")
    found.end()
    known = known_to(user, row)
    kept = {name: known[name] for name in GIVEN}
    # those of ours mean nothing to a script
    theirs = known["params"] if row.is_scripted or not given.get("start_file") else {}
    return {**kept, **given, "version": version, "params": {**theirs, **given.get("params", {})}}


def known_to(user: User, row: EvaluationSet) -> dict[str, Any]:
    """GIVEN and `params` of a set as this person may begin with it: secrets of its script are its owner's alone."""
    said = {name: getattr(row, name) for name in (*GIVEN, "params")}
    if row.is_scripted and row.owner_id != user.pk:
        said |= {"arguments": scripts.open_words(row.arguments), "params": scripts.open_pairs(row.params)}
    return said


def usable_version(row: EvaluationSet, user: User) -> DatasetVersion | None:
    """The data of a set, where this person may use it."""
    found: DatasetVersion | None = DatasetVersion.objects.usable_by(user).filter(pk=row.version_id or 0).first()
    return found


def check_name(user: User, name: str = "", *, existing: EvaluationSet | None = None) -> None:
    """Refuse a name with odd characters, or that another set of the person has, or of the set's owner."""
    if name and (not re.fullmatch(TITLE.regex, name) or len(name) > MAX_NAME):
        raise Invalid(TITLE.message, field="name")
    others = EvaluationSet.objects.filter(owner=existing.owner if existing else user, name=name)
    if (others.exclude(pk=existing.pk) if existing else others).exists():
        raise _taken()


def _taken() -> NameTaken:
    return NameTaken(_("A parameter set of yours has this name. Choose another."))
