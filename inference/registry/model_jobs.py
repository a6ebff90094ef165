"""Jobs about a model: measure how fast a version answers, and read an archive of torch in a sandbox."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import files, titles, wording
from aiplatform.lib.columns import USER_NAMES, narrow
from aiplatform.lib.errors import DomainError, Refusals
from aiplatform.lib.numbers import finite
from aiplatform.lib.parsers import is_sound
from inference.registry import inspections
from inference.registry import registration as registry
from inference.registry.file_copies import copy_rest
from inference.registry.formats.declared import NOTHING, Declared
from inference.registry.messages import MODEL_TASK as REFUSALS
from inference.registry.models import Model, ModelTask, ModelVersion, Visibility
from inference.registry.registration import Origin
from workers.core.models import Attempt, Device, Job
from workers.core.runs import RunDir
from workers.jobs import submission
from workers.jobs.resource_request import Resources, cluster_for

KIND = "model_task"
CPUS = 2.0
ARCHIVE = "torch"  # name of the archive next to the attempts of its job
SPEED, REFUSED = "speed.json", "refused.json"  # in the outputs
SHOWN = 8
MAX_LENGTH = 300  # characters of what a program says
MAX_BYTES = 1 << 20  # of what is read of its outputs
Act = ModelTask.Act


class CannotMeasure(DomainError, code="cannot_measure"):
    """There is nothing to run in this version."""


class _Made(Exception):
    """Another worker made the version meanwhile."""


def archive_of(job: Job) -> Path:
    """Return the path of the archive that a job reads."""
    return Path(settings.DATA_ROOT) / "jobs" / str(job.pk) / ARCHIVE


def measure(
    *, user: User, version: ModelVersion, cpus: float = CPUS, gpus: int = 0, device_model: str = ""
) -> ModelTask:
    """Queue a measurement of how fast a version answers, on so many cores or on a card.

    Args:
        device_model: which model of card; it asks for one. "": any, where `gpus` is 1.

    Raises:
        CannotMeasure: it has no ONNX file.
        DomainError: the queue refuses.
    """
    if not version.can_serve:
        raise CannotMeasure(_("%(model)s has no ONNX file and cannot run here.") % {"model": version})
    resources: Resources = {"cluster": cluster_for(user, None), "cpus": cpus, "gpus_per_node": gpus}
    if device_model:
        resources |= {"gpus_per_node": 1, "device_model": device_model}
    name = titles.derive_name(f"{version} speed", room=100)
    with transaction.atomic():
        job = submission.submit(owner=user, kind=KIND, name=name, spec={"version": version.pk}, **resources)
        return ModelTask.objects.create(job=job, act=Act.MEASURE, version=version)


@contextmanager
def import_workplace(
    bring: Callable[[Path], None], folder: str, *, user: User, name: str, model: Model | None, declared: Declared
) -> Iterator[Path]:
    """A workplace with the files in `folder`, removed at the end; what is left for the job is moved out before.

    Raises:
        Invalid, NameTaken, DomainError: all that is wrong with the name, the declaration and the files.
    """
    refusals, work = Refusals(), registry.workplace()
    with refusals:
        if model is None:
            registry.check_name(user=user, name=name)
    with refusals:
        declared.check()
    try:
        with refusals:
            bring(work / folder)
        refusals.end()
        yield work
    finally:
        files.remove_tree(work)


def convert(
    *,
    user: User,
    bring: Callable[[Path], None],
    suffix: str,
    label: str = "",
    declared: Declared = NOTHING,
    name: str = "",
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
    queued: Callable[[ModelTask], object] = lambda _task: None,
) -> ModelTask:
    """Queue a job that opens an archive of torch where it can do no harm, and makes a version of what is in it.

    Args:
        bring: makes the folder it is given and puts the archive there, alone.
        suffix: of the archive, which tells how it is read.
        label: what the archive was called.

    Raises:
        Invalid: what is declared fits no model.
        NameTaken: the user has a model of this name.
        DomainError: the queue refuses.
    """
    with import_workplace(bring, "in", user=user, name=name, model=model, declared=declared) as work:
        (archive,) = (work / "in").iterdir()
        spec = {
            "suffix": suffix, "label": label[:300], "declared": asdict(declared), "name": name,
            "description": description, "visibility": visibility, "model": model.pk if model else None,
        }  # fmt: skip
        with transaction.atomic():
            resources: Resources = {"cluster": cluster_for(user, None), "cpus": CPUS, "gpus_per_node": 0}
            called = titles.derive_name(f"{model or name} import", room=100)
            job = submission.submit(owner=user, kind=KIND, name=called, spec=spec, **resources)
            task = ModelTask.objects.create(job=job, act=Act.CONVERT)
            queued(task)
            archive_of(job).parent.mkdir(parents=True, exist_ok=True)
            archive.rename(archive_of(job))
        return task


def measurements(version: ModelVersion, user: User) -> Sequence[ModelTask]:
    """The newest measurements of a version that `user` may see: those with figures, and those on their way.

    Users who see the version see its speed; `ModelTask.job` is shown to those who see the job.
    """
    rows = version.measurements.filter(act=Act.MEASURE).select_related("job__owner").order_by("-pk")
    rows = narrow(rows, job__owner=USER_NAMES)
    own = Job.objects.visible_to(user).values("pk")
    return list(rows.filter(~Q(figures={}) | Q(job__in=own))[:SHOWN])


def publish(job: Job, attempt: Attempt) -> None:
    """Keep what an attempt measured or made; may be called again."""
    task = ModelTask.objects.filter(job=job).select_related("version__model", "job__owner").first()
    if task is None:
        return
    outputs = RunDir.for_attempt(job.pk, attempt.number).outputs
    if refused := _refusal(read(outputs, REFUSED)):
        _set_message(task, refused)
    elif task.act == Act.MEASURE:
        if figures := _figures(read(outputs, SPEED)):
            figures |= _machine(attempt)
            ModelTask.objects.filter(pk=task.pk).update(figures=figures, message=wording.Message())
    elif task.act == Act.CONVERT and task.made_id is None and (outputs / "model").is_dir():
        _register(task, outputs)


def _set_message(task: ModelTask, message: wording.Message) -> None:
    """Store why nothing was created, unless another worker created it meanwhile."""
    ModelTask.objects.filter(pk=task.pk, made=None).update(message=message)


def _register(task: ModelTask, outputs: Path) -> None:
    """Create the version from the outputs of the job; the declaration may turn out not to fit."""
    spec, owner = task.job.spec, task.job.owner
    model = Model.objects.editable_by(owner).filter(pk=spec["model"]).first() if spec["model"] else None
    if spec["model"] and model is None:
        _set_message(task, wording.message("model_task.model_gone"))
        return

    def made(version: ModelVersion) -> None:
        if not ModelTask.objects.filter(pk=task.pk, made=None).update(made=version, message=wording.Message()):
            raise _Made

    declared = Declared(**spec["declared"] | {"labels": tuple(spec["declared"]["labels"])})
    fields = {name: spec[name] for name in ("name", "description", "visibility")}
    origin = Origin(ModelVersion.Source.IMPORT, label=spec["label"])
    try:
        registry.register(
            user=owner,
            bring=partial(_copy_outputs, outputs),
            origin=origin,
            model=model,
            declared=declared,
            made=made,
            bounds=inspections.WORKER,
            **fields,
        )
    except _Made:
        return
    except DomainError as exc:
        _set_message(task, wording.of_error(exc))
        return
    archive_of(task.job).unlink(missing_ok=True)


def _copy_outputs(outputs: Path, into: Path) -> None:
    """Copy the outputs of the program, following no link."""
    into.mkdir()
    for name in ("model.onnx", "model.safetensors"):
        try:
            descriptor = files.open_beneath(outputs, f"model/{name}")
        except (OSError, files.OutsideRoot):
            continue
        with os.fdopen(descriptor, "rb") as source:
            copy_rest(source, into / name, max_bytes=inspections.MAX_BYTES)


def _machine(attempt: Attempt) -> dict[str, str]:
    """The node that an attempt ran on, and the card that it held."""
    held = attempt.allocations.select_related("node", "device").first()
    if held is None:
        return {"node": ""}
    card = held.device.model if held.device.kind != Device.Kind.CPU else ""
    return {"node": held.node.name, **({"card": card} if card else {})}


def _refusal(document: Mapping[str, Any]) -> wording.Message:
    """Return the reason that a program states for having no result; empty if it states none."""
    code, facts = document.get("code"), document.get("facts")
    if code not in REFUSALS or not isinstance(facts, dict) or not is_sound(facts):
        return wording.Message()
    short = {name: value[:MAX_LENGTH] if isinstance(value, str) else value for name, value in facts.items()}
    return wording.message(f"model_task.{code}", **short)


def read(outputs: Path, name: str) -> Mapping[str, Any]:
    """Return the table in a file of the outputs; {} if there is none."""
    try:
        with os.fdopen(files.open_beneath(outputs, name), "rb") as file:
            document = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError, files.OutsideRoot):
        return {}
    return document if isinstance(document, dict) else {}


def _figures(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers and short texts of a measurement; {} if it has no time."""
    numbers = {name: value for name, value in values.items() if finite(value) is not None}
    texts = {name: value[:100] for name, value in values.items() if isinstance(value, str) and is_sound(value)}
    return texts | numbers if numbers.get("p50_ms") else {}
