"""The model registry: register, hand out, delete."""

from __future__ import annotations

import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import copies, files
from aiplatform.lib.errors import Invalid, NameTaken, Refusals
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from inference.registry import history, inspections, retention, withdrawals
from inference.registry.formats.declared import NOTHING, Declared
from inference.registry.formats.folder import ModelContents
from inference.registry.formats.onnx import RefusedModel
from inference.registry.inspections import FILES, Bounds, unpack
from inference.registry.models import Model, ModelVersion, Visibility
from workers.core.models import Job

log = logging.getLogger(__name__)
WORKSPACE_RETENTION = timedelta(days=1)  # an inspection takes at most half an hour
_WORKPLACE = re.compile(r"\.{1,2}[0-9a-f]{32}(\.\d+\.deleted)?")  # and one that was being removed


@dataclass(frozen=True)
class Origin:
    """Where the files of a version come from: `source`, the job that left them, the version they were made of.

    `facts` are what is known of how that was done, beside what the files say.
    """

    source: str
    job: Job | None = None
    attempt: int = 0
    label: str = ""  # what to call it on the page
    parent: ModelVersion | None = None  # it learned from the same data
    facts: Mapping[str, Any] = field(default_factory=dict)

    def lineage(self) -> dict[str, Any]:
        """The columns of a version that say so."""
        own: dict[str, Any] = {"source": self.source, "job": self.job, "attempt": self.attempt}
        own["code_label"] = self.label[:300]
        if (parent := self.parent) is not None:
            data = {"dataset_version": parent.dataset_version, "dataset_label": parent.dataset_label}
            own |= {"parent": parent, "parent_label": f"{parent.model.owner.username}/{parent}"[:220], **data}
        return own


def register_upload(
    *,
    user: User,
    archive: Path,
    filename: str,
    name: str = "",
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
    declared: Declared = NOTHING,
    made: Callable[[ModelVersion], object] = lambda _version: None,
) -> ModelVersion:
    """Make a version out of an uploaded archive, or of a single .onnx or .safetensors file; see `register`.

    Args:
        archive: the bytes as they came; left where they are.
        filename: what the file was called, to tell a bare model from an archive.
    """
    origin = Origin(ModelVersion.Source.IMPORT if declared else ModelVersion.Source.UPLOAD)
    return register(
        user=user,
        bring=partial(unpack, archive, filename),
        origin=origin,
        name=name,
        description=description,
        visibility=visibility,
        model=model,
        declared=declared,
        made=made,
    )


def register(
    *,
    user: User,
    bring: Callable[[Path], None],
    origin: Origin,
    name: str = "",
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
    declared: Declared = NOTHING,
    read: Callable[[Path], ModelContents] | None = None,
    bounds: Bounds = inspections.REQUEST,
    made: Callable[[ModelVersion], object] = lambda _version: None,
) -> ModelVersion:
    """Create a version out of files from anywhere.

    Args:
        bring: makes the folder it is given, and puts the files there; or `inspections.unpack` with an archive.
        model: add a version to this one; None makes a new model called `name`.
        declared: what the user declares of files without model.json.
        read: says what is in the folder, where the platform itself made the files; None: they are inspected.
        bounds: how long the inspection may take, and what it may reply.
        made: called with the version in the transaction that makes it.

    Raises:
        ModelRefused: pickles, no model, broken files; says why in plain words.
        Invalid: what is declared does not fit the files, or each other.
        ArchiveRefused: the archive itself is broken or dangerous.
        NameTaken: the user has a model of this name.
    """
    refusals, work, placed = Refusals(), workplace(), None
    with refusals:
        if model is None:
            check_name(user=user, name=name)
    with refusals:
        declared.check()
    try:
        with refusals:
            bring(work / FILES)
            content = read(work / FILES) if read else inspections.of_import(work, declared, bounds=bounds)
            content.facts |= origin.facts
        refusals.end()
        staged, listed = _stage(content, work, work)
        with transaction.atomic():
            if model is None:
                model = Model.objects.create(owner=user, name=name, description=description, visibility=visibility)
            version = _add(model, content, staged, listed, created_by=user, **origin.lineage())
            placed = version.path
            made(version)
            return version
    except BaseException as exc:
        if placed is not None:  # its row is rolled back
            files.remove_tree(placed)
        if isinstance(exc, IntegrityError):
            raise _name_taken(name) from None
        raise
    finally:
        files.remove_tree(work)


def register_training(
    *,
    job: Job,
    attempt: int,
    folder: Path,
    dataset_version: DatasetVersion | None,
    dataset_label: str,
    code_label: str,
    description: str = "",
    begun: Mapping[str, Any] | None = None,
) -> ModelVersion | None:
    """Register the model that a job wrote to `folder` (its run's outputs/model); once per attempt.

    A model of the job's name gets a further version. Gives None where the job left no model, or one
    that is refused (the log says why).

    Args:
        begun: its initial model and its teacher, see `lineage.training_columns`.
    """
    own = ModelVersion.objects.filter(job=job, attempt=attempt, source=ModelVersion.Source.TRAINING)
    existing: ModelVersion | None = own.first()
    if existing is not None or not folder.is_dir():
        return existing
    if Path(os.path.realpath(folder)) != Path(os.path.realpath(folder.parent.parent)) / "outputs" / "model":
        log.warning("job=%s attempt=%s its outputs/model is a link and is not followed", job.pk, attempt)
        return None
    work = workplace()
    try:
        content = inspections.of_outputs(folder)
        staged, listed = _stage(content, folder.parent.parent, work)
        with transaction.atomic():
            model, _made = Model.objects.get_or_create(
                owner=job.owner, name=job.name, defaults={"description": description}
            )
            return _add(
                model,
                content,
                staged,
                listed,
                source=ModelVersion.Source.TRAINING,
                created_by=job.owner,
                job=job,
                attempt=attempt,
                dataset_version=dataset_version,
                dataset_label=dataset_label[:80],
                code_label=code_label[:300],
                **(begun or {}),
            )
    except (RefusedModel, inspections.ModelRefused) as exc:
        log.warning("job=%s attempt=%s its model is not registered: %s", job.pk, attempt, exc)
        return None
    except IntegrityError:  # another worker published the same attempt meanwhile
        return own.first()
    finally:
        files.remove_tree(work)


def _stage(content: ModelContents, root: Path, work: Path) -> tuple[Path, list[dict[str, Any]]]:
    """Copy the files that count into a folder of the platform, outside of any transaction: it takes minutes.

    Returns:
        The folder, and its files by name with size and SHA-256.

    Args:
        root: a folder above them that only the platform writes; from there on no link is followed.

    Raises:
        RefusedModel: one of them became a link or a special file since it was looked at.
    """
    staged = work / "version"
    staged.mkdir(parents=True)
    listed = []
    for name, source in content.files.items():
        try:
            descriptor = files.open_beneath(root, source.relative_to(root))
        except files.OutsideRoot:
            message = _("%(name)s is a link or a special file, which is not supported.") % {"name": name}
            raise RefusedModel(message) from None
        with os.fdopen(descriptor, "rb") as inside:
            digest = copies.copy_hashed(inside, staged / name)
        listed.append({"name": name, "size": (staged / name).stat().st_size, "sha256": digest})
    files.flush_filesystem(staged)
    return staged, sorted(listed, key=lambda entry: entry["name"])


def _add(
    model: Model, content: ModelContents, staged: Path, listed: list[dict[str, Any]], **lineage: Any
) -> ModelVersion:
    """Make the row and move the staged files to their place; inside a transaction, which the number needs."""
    running = ("model.onnx", "model.safetensors", "model.json")  # a composed version's names what else there is
    weights = next(name for name in running if name in content.files)
    Model.objects.select_for_update().get(pk=model.pk)
    newest = model.versions.aggregate(newest=Max("number"))["newest"] or 0
    version = ModelVersion.objects.create(
        model=model,
        number=newest + 1,
        task=content.task,
        architecture=content.architecture,
        preset=content.preset,
        classes=content.classes,
        metrics=content.metrics,
        params=content.params,
        facts=content.facts,
        files=listed,
        size_bytes=sum(entry["size"] for entry in listed),
        sha256=next(entry["sha256"] for entry in listed if entry["name"] == weights),
        **lineage,
    )
    model.save(update_fields=["updated_at"])
    history.add(model, version.created_by, "model_version_made", version, source=version.source)
    files.remove_tree(version.path)  # left by a transaction that was rolled back
    version.path.parent.mkdir(parents=True, exist_ok=True)
    staged.rename(version.path)
    files.flush_folder(version.path.parent)
    return version


def edit(
    *, model: Model, description: str, visibility: str, packages_pictures: bool | None = None, by: User | None = None
) -> Model:
    """Change a model; made private, it stops the services of others that use it.

    Args:
        packages_pictures: whether packages carry pictures of a dataset for self-tests; None: as before.
    """
    if visibility not in Visibility.values:
        raise Invalid(_("The visibility of a model must be private or public."), field="visibility")
    values: dict[str, Any] = {"description": description, "visibility": visibility}
    if packages_pictures is not None:
        values["packages_pictures"] = packages_pictures
    with transaction.atomic():
        current = Model.objects.select_for_update().get(pk=model.pk)
        changed = [name for name, value in values.items() if getattr(current, name) != value]
        for name, value in values.items():
            setattr(model, name, value)
        model.save(update_fields=[*values, "updated_at"])
        if changed:
            history.add(model, by, "model_changed", fields=changed)
    withdrawals.stop_unshared(model)
    return model


def delete(*, model: Model, by: User | None = None) -> None:
    """Delete a model with all its versions and files; services of others that use it are disabled.

    Raises:
        StillInUse: something that `retention.users_of` finds uses one of them; names all.
    """
    refusals = Refusals()
    for version in model.versions.select_related("model__owner"):
        with refusals:
            retention.check_unused(version)
    refusals.end()
    withdrawals.disable(model)
    folder = model.folder
    with transaction.atomic():
        history.add(model, by, "model_deleted")
        model.delete()
    files.remove_tree(folder)


def delete_version(*, version: ModelVersion, by: User | None = None) -> None:
    """Remove one version; the last one takes the model with it. Services of others that answer with it are disabled.

    Raises:
        StillInUse: something that `retention.users_of` finds uses it, or an alias stands for it.
    """
    retention.check_unused(version)
    last = not version.model.versions.exclude(pk=version.pk).exists()
    if not last:
        retention.check_no_alias(version)
    withdrawals.disable(version.model, version)
    model, path, number = version.model, version.path, version.pk
    with transaction.atomic():
        history.add(model, by, "model_version_deleted", version)
        version.delete()
    for beside in model.folder.glob(f"*-{number}.*"):  # made of it later: samples, programs
        beside.unlink(missing_ok=True)
    files.remove_tree(path)
    if last:
        delete(model=model, by=by)


def check_name(*, user: User, name: str | None = None) -> None:
    """Refuse a name for a new model: odd characters, too long, or of another model of the user; None is no name."""
    if name is None:
        return
    if not TITLE.regex.match(name) or len(name) > 100:  # type: ignore[union-attr]  # compiled by the validator
        raise Invalid(TITLE.message, field="name")
    if Model.objects.filter(owner=user, name=name).exists():
        raise _name_taken(name)


def _name_taken(name: str) -> NameTaken:
    return NameTaken(_("You already have a model named “%(name)s”.") % {"name": name})


def remove_stale_workplaces() -> None:
    """Remove the temporary folders of requests and workers that were killed."""
    oldest = time.time() - WORKSPACE_RETENTION.total_seconds()
    for folder in (Path(settings.DATA_ROOT) / "models").glob(".*"):
        with suppress(FileNotFoundError):
            if _WORKPLACE.fullmatch(folder.name) and folder.stat().st_mtime < oldest:
                log.warning("folder=%s of an import that was killed is removed", folder.name)
                files.remove_tree(folder)


def workplace() -> Path:
    """Make a temporary folder on the file system of the models."""
    work = Path(settings.DATA_ROOT) / "models" / f".{uuid.uuid4().hex}"
    work.mkdir(parents=True)
    return work
