"""Programs of torch.export: queue the job, keep what it made, hand it out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import disk, files, titles
from aiplatform.lib.errors import DomainError
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.registry import model_jobs
from inference.registry.file_copies import TooLarge, copy_rest
from inference.registry.models import ModelTask, ModelVersion
from workers.jobs import submission
from workers.jobs.resource_request import Resources, cluster_for

PRESETS = ("classify", "segment", "tag")  # whose networks can be rebuilt, see training/presets/torch_export.py
OWN = "own"  # architecture of a custom network
WEIGHTS, PROGRAM, FACTS = "model.safetensors", "model.pt2", "torch.json"
MAX_BYTES = 8 << 30
Act = ModelTask.Act


class CannotExport(DomainError, code="cannot_export"):
    """This version cannot become a program of torch."""


def check(version: ModelVersion) -> None:
    """Raise an error for a version whose network the platform's own presets cannot rebuild.

    Raises:
        CannotExport.
    """
    facts = {"model": version}
    if version.source != ModelVersion.Source.TRAINING:
        message = _("%(model)s was not trained here, so its network is unknown. Export a version of a training job.")
        raise CannotExport(message % facts)
    if version.preset not in PRESETS:
        message = _(
            "The network of %(model)s cannot be rebuilt. Only classifiers, taggers and segmenters of presets can."
        )
        raise CannotExport(message % facts)
    if version.architecture == OWN:
        message = _(
            "The network of %(model)s is a custom program of another user. Export it from that program with "
            "torch.export."
        )
        raise CannotExport(message % facts)
    if not {WEIGHTS, "model.onnx", "model.json"} <= {entry["name"] for entry in version.files}:
        message = _("%(model)s has no weights or no ONNX file. Train it again.")
        raise CannotExport(message % facts)


def can_export(version: ModelVersion) -> bool:
    """Whether `check` lets it pass."""
    try:
        check(version)
    except CannotExport:
        return False
    return True


def submit(*, user: User, version: ModelVersion) -> ModelTask:
    """Queue the export of a version.

    Raises:
        CannotExport: its network cannot be rebuilt, or an export of it is on its way.
        DomainError: the queue refuses.
    """
    check(version)
    newest = latest_task(version)
    if newest is not None and not newest.job.published:
        raise CannotExport(
            _("An export of %(model)s is in progress. Wait until it has completed.") % {"model": version}
        )
    resources: Resources = {"cluster": cluster_for(user, None), "cpus": model_jobs.CPUS, "gpus_per_node": 0}
    name = titles.derive_name(f"{version} torch", room=100)
    with transaction.atomic():
        job = submission.submit(owner=user, kind=model_jobs.KIND, name=name, spec={"version": version.pk}, **resources)
        return ModelTask.objects.create(job=job, act=Act.TORCH, version=version)


def latest_task(version: ModelVersion) -> ModelTask | None:
    """Return the newest export of a version, whatever its result."""
    return version.measurements.filter(act=Act.TORCH).select_related("job").order_by("-pk").first()


def latest_program(version: ModelVersion) -> ModelTask | None:
    """Return the newest export of a version that has a program."""
    rows = version.measurements.filter(act=Act.TORCH).exclude(figures={}).select_related("job")
    return rows.order_by("-pk").first()


def file_of(version: ModelVersion) -> Path:
    """Return the path of the program of a version: next to its folder, which holds only what it was registered with."""
    return version.model.folder / f"torch-{version.pk}.pt2"


def store(task: ModelTask, outputs: Path) -> None:
    """Store the program that a job wrote, as bytes; idempotent."""
    version, facts = task.version, _facts(model_jobs.read(outputs, FACTS))
    if version is None or not facts:
        return
    target = file_of(version)
    temporary = target.with_suffix(f".{task.pk}.tmp")
    try:
        with os.fdopen(files.open_beneath(outputs, PROGRAM), "rb") as source:
            size = copy_rest(source, temporary, max_bytes=MAX_BYTES)
        digest = files.sha256_of(temporary)
        temporary.replace(target)
        files.flush_folder(target.parent)
    except (OSError, files.OutsideRoot, TooLarge, disk.DiskFull):
        return
    finally:
        temporary.unlink(missing_ok=True)
    figures = facts | {"size_bytes": size, "sha256": digest}
    ModelTask.objects.filter(pk=task.pk).update(figures=figures)


def open_program(version: ModelVersion) -> int | None:
    """Open the program and return its descriptor; None if there is none."""
    if latest_program(version) is None:
        return None
    try:
        return files.open_beneath(version.model.folder, file_of(version).name)
    except (OSError, files.OutsideRoot):
        return None


def filename(version: ModelVersion) -> str:
    """What the program is called at the reader's."""
    return f"{version.model.name}_v{version.number}.pt2"


def _facts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the program was compared; {} if the values are invalid."""
    largest, pictures, torch = finite(values.get("largest")), finite(values.get("pictures")), values.get("torch")
    if largest is None or not 0 <= largest <= 1 or pictures is None or not 1 <= pictures <= 100:
        return {}
    if not isinstance(torch, str) or not is_sound(torch):
        return {}
    return {"largest": largest, "pictures": int(pictures), "batch": values.get("batch") is True, "torch": torch[:40]}
