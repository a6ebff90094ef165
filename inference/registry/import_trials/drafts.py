"""Imports that wait for a confirmation: the files are inspected first, the version follows from what is confirmed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import files as disk_files
from aiplatform.lib import wording
from aiplatform.lib.errors import Invalid, Refusals
from datasets.models import DatasetVersion
from inference.registry import imports, inspections
from inference.registry import registration as registry
from inference.registry.formats.declared import NOTHING, Declared
from inference.registry.formats.folder import ModelContents
from inference.registry.import_trials import trials
from inference.registry.import_trials.trials import SUMMARY, Example
from inference.registry.imports import ModelSource
from inference.registry.inspections import FILES
from inference.registry.inspector import replies
from inference.registry.inspector.detection import Detection, detect
from inference.registry.models import Model, ModelImport, ModelTask, ModelVersion, Visibility

log = logging.getLogger(__name__)
RETENTION = timedelta(days=7)
MAX_BYTES = 1 << 30  # larger files are read by a job


def create(*, user: User, brought: ModelSource, name: str = "", model: Model | None = None) -> ModelImport | ModelTask:
    """Copy and inspect the files of a model; nothing is added to the registry.

    Returns:
        The import to confirm; or the job that reads files which are too large for a request.

    Raises:
        NameTaken, Invalid: the name cannot be used.
        ModelRefused, ArchiveRefused: broken or unsafe files.
        DomainError: the queue refuses.
    """
    user.require(Action.MODELS_MANAGE)
    if brought.size_bytes > MAX_BYTES:
        return _import_by_job(user=user, brought=brought, name=name, model=model)
    refusals, work, contents = Refusals(), registry.workplace(), None
    with refusals:
        if model is None:
            registry.check_name(user=user, name=name)
    try:
        with refusals:
            brought.bring(work / FILES)
            if not brought.torch:
                contents, files = inspections.of_detection(work)
                (work / inspections.PACKED).unlink(missing_ok=True)
                if files is not None:
                    disk_files.write_json(work / SUMMARY, replies.encode_files(files))
        refusals.end()
        row = ModelImport.objects.create(
            owner=user, name=name, model=model, origin=trials.origin_spec(brought.origin), torch=brought.torch,
            declared=asdict(NOTHING), contents=_summary(contents),
        )  # fmt: skip
        row.folder.parent.mkdir(parents=True, exist_ok=True)
        work.rename(row.folder)
        return row
    except inspections.TooSlow as slow:
        if slow.others:
            raise
        return _import_by_job(user=user, brought=brought, name=name, model=model)
    finally:
        disk_files.remove_tree(work)


def _import_by_job(**fields: Any) -> ModelTask:
    fields = {name: value for name, value in fields.items() if value}
    return imports.submit_job(**fields)


def _summary(contents: ModelContents | None) -> dict[str, Any]:
    if contents is None:
        return {}
    names = [entry.get("name", "") for entry in contents.classes]
    return {"task": contents.task, "classes": len(names), "names": names[:20], "input": contents.facts.get("input", {})}


def declared_of(row: ModelImport) -> Declared:
    """Return what the user entered so far."""
    values = row.declared or asdict(NOTHING)
    return Declared(**{**values, "labels": tuple(values["labels"])})


def detection_of(row: ModelImport, declared: Declared | None = None) -> Detection | None:
    """Return what is detected; None for files that describe themselves, weights, and PyTorch archives.

    Args:
        declared: in place of what is stored.
    """
    path = row.folder / SUMMARY
    if not path.is_file():
        return None
    return detect(trials.read_summary(row.folder), declared_of(row) if declared is None else declared)


def edit(row: ModelImport, declared: Declared) -> None:
    """Store what the user enters.

    Raises:
        Invalid: values that no model can have, or that contradict the files; all of them at once.
    """
    declared.check()
    detection = detection_of(row, declared)
    if detection is not None and declared:
        _check_complete(detection)
    row.declared = asdict(declared)
    row.save(update_fields=["declared"])


def _check_complete(detection: Detection) -> None:
    if detection.declaration is not None:
        return
    if not detection.refusals:
        raise Invalid(_("The outputs of the model do not match this task and layout."), field="task")
    unique = {(refusal.blamed, refusal.message): refusal for refusal in detection.refusals}  # layouts share some
    first, *others = unique.values()
    first.others = tuple(others)
    raise first


def submit_trial(
    *, row: ModelImport, by: User, pictures: Sequence[Example] = (), version: DatasetVersion | None = None
) -> ModelTask:
    """Queue a job that runs the model on images in every interpretation that is still possible.

    Raises:
        DomainError: see `trials.submit`.
    """
    task = trials.submit(
        user=by, brought=_source(row), declared=declared_of(row), pictures=pictures, version=version,
        **_target(row),
    )  # fmt: skip
    row.trial = task
    row.save(update_fields=["trial"])
    return task


def confirm(
    *, row: ModelImport, by: User, name: str = "", description: str = "", visibility: str = Visibility.PRIVATE
) -> ModelVersion | ModelTask:
    """Create the version, or the job that does; the import is removed.

    Args:
        name: of the new model, in place of the one that was given.

    Raises:
        Invalid: a value is missing that the files do not define.
        DomainError: see `imports.import_model`.
    """
    by.require(Action.MODELS_MANAGE)
    declared, detection = declared_of(row), detection_of(row)
    if detection is not None and (detection.declaration is not None or detection.refusals):
        _check_complete(detection)
        declared = detection.declaration or declared
    target = _target(row)
    if row.model is None:
        target |= {"name": name or row.name, "description": description, "visibility": visibility}
    made = imports.import_model(user=row.owner, brought=_source(row), declared=declared, **target)
    discard(row)
    return made


def _target(row: ModelImport) -> dict[str, Any]:
    return {"model": row.model} if row.model is not None else {"name": row.name}


def _source(row: ModelImport) -> ModelSource:
    """Return the stored files as a source of an import.

    Raises:
        Gone: they were removed.
    """
    if not (row.folder / FILES).is_dir():
        raise trials.Gone(wording.message("model_task.files_gone"))
    size = sum(path.stat().st_size for path in (row.folder / FILES).rglob("*") if path.is_file())
    bring = partial(trials.copy_files, row.folder / FILES)
    return ModelSource(bring, trials.origin_of(row.origin), row.torch, size_bytes=size)


def discard(row: ModelImport) -> None:
    """Remove an import and its files."""
    folder = row.folder
    row.delete()
    disk_files.remove_tree(folder)


def remove_old() -> None:
    """Remove imports that were not confirmed in time."""
    for row in ModelImport.objects.filter(created_at__lt=now() - RETENTION):
        log.info("import=%s of model %s expired", row.pk, row)
        discard(row)
