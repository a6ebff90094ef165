"""Jobs that try a model on pictures, and the version that is made of the way somebody chose."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform import env
from aiplatform.lib import copies, titles, wording
from aiplatform.lib import files as disk_files
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from datasets.models import DatasetVersion
from inference.registry import inspections, model_jobs
from inference.registry import registration as registry
from inference.registry.file_copies import TooLarge, copy_rest
from inference.registry.formats.declared import NOTHING, Declared, Files
from inference.registry.formats.folder import find_weights
from inference.registry.import_trials import results
from inference.registry.imports import ModelSource
from inference.registry.inspections import FILES
from inference.registry.inspector import replies, variants
from inference.registry.inspector.trial_candidates import CannotTry
from inference.registry.models import Model, ModelTask, ModelVersion, Visibility
from inference.registry.registration import Origin
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir
from workers.jobs import submission
from workers.jobs.resource_request import Resources, cluster_for

HOME, PICTURES = "try", "pictures"
SUMMARY = "files.json"  # what the files of the model say, as the inspector read them
MAX_IMAGES = 6
MAX_PICTURE_BYTES = 64 << 20
SECONDS = 240  # after which the program begins nothing new
MAX_DURATION = timedelta(minutes=15)  # of the job
Source = ModelVersion.Source


class AlreadyUsed(DomainError, code="already_used"):
    """A version was made of this trial before."""


@dataclass(frozen=True)
class Example:
    """An image that a user sent: its name and an open file."""

    name: str
    file: BinaryIO


def home(job: Job) -> Path:
    """Where the files and pictures of a trial lie until one of its ways is used."""
    return Path(settings.DATA_ROOT) / "jobs" / str(job.pk) / HOME


def submit(
    *,
    user: User,
    brought: ModelSource,
    declared: Declared = NOTHING,
    pictures: Sequence[Example] = (),
    version: DatasetVersion | None = None,
    name: str = "",
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
) -> ModelTask:
    """Queue a job that runs a model on images in every possible variant and shows the best.

    Args:
        declared: what is known of it, which is the same in all ways.
        pictures, version: what it is tried on, at most MAX_IMAGES in all; of a dataset version, which `user` may
            use, those with most on them.
        name, description, visibility, model: of what will be made of it, as in `models.register`.

    Raises:
        CannotTry: it is no ONNX file, describes itself, or has outputs that nobody here can read.
        Invalid: what is declared does not fit the files; there is no picture, or there are too many.
        ModelRefused: broken or unsafe files.
        NameTaken: the user has a model of this name.
        DomainError: the queue refuses.
    """
    refusals, work = Refusals(), registry.workplace()
    with refusals:
        if model is None:
            registry.check_name(user=user, name=name)
    with refusals:
        declared.check()
    with refusals:
        check_pictures(len(pictures), version)
    try:
        with refusals:
            if brought.torch:
                message = _(
                    "A PyTorch archive cannot be tested. Export the model as ONNX, or import it with a description."
                )
                raise CannotTry(message)
            brought.bring(work / FILES)
            tried, files = inspections.of_trial(work, declared)
            (work / inspections.PACKED).unlink(missing_ok=True)
            disk_files.write_json(work / SUMMARY, replies.encode_files(files))
        with refusals:
            _store_pictures(pictures, work / PICTURES)
        refusals.end()
        spec = {
            "ways": [variants.as_spec(declaration, declared) for declaration in tried],
            "declared": asdict(declared), "name": name,
            "description": description, "visibility": visibility, "model": model.pk if model else None,
            "origin": origin_spec(brought.origin), "names": [example.name[:200] for example in pictures],
            "version": version.pk if version else None,
        }  # fmt: skip
        job_name = titles.derive_name(f"{model or name} trial", room=100)
        with transaction.atomic():
            resources: Resources = {
                "cluster": cluster_for(user, None), "cpus": model_jobs.CPUS, "gpus_per_node": 0,
                "max_runtime": MAX_DURATION,
            }  # fmt: skip
            job = submission.submit(owner=user, kind=model_jobs.KIND, name=job_name, spec=spec, **resources)
            task = ModelTask.objects.create(job=job, act=ModelTask.Act.TRY)
            home(job).parent.mkdir(parents=True, exist_ok=True)
            work.rename(home(job))
        return task
    finally:
        disk_files.remove_tree(work)


def check_pictures(count: int, version: DatasetVersion | None) -> None:
    """Raise an error unless there are images, and not too many."""
    if not count and version is None:
        raise Invalid(_("Choose images, or a dataset, to try the model on."), field="pictures")
    if count > MAX_IMAGES:
        message = _("Choose at most %(most)s images: a few are enough to see which interpretation is correct.")
        raise Invalid(message % {"most": MAX_IMAGES}, field="pictures")


def _store_pictures(pictures: Sequence[Example], into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for index, picture in enumerate(pictures[:MAX_IMAGES]):
        try:
            copy_rest(picture.file, into / str(index), max_bytes=MAX_PICTURE_BYTES)
        except TooLarge:
            message = _("%(name)s is larger than the limit of %(most)s MiB for an image.")
            facts = {"name": picture.name[:100], "most": MAX_PICTURE_BYTES >> 20}
            raise Invalid(message % facts, field="pictures") from None


def origin_spec(origin: Origin) -> dict[str, Any]:
    """Encode where the files come from, for a row."""
    source = Source.IMPORT if origin.source == Source.UPLOAD else origin.source  # it will be declared
    job = origin.job.pk if origin.job else None
    return {"source": source, "job": job, "attempt": origin.attempt, "label": origin.label[:300]}


def declared_of(task: ModelTask) -> Declared:
    """Return what was declared when the trial was submitted."""
    values: Mapping[str, Any] = task.job.spec["declared"]
    return Declared(**{**values, "labels": tuple(values["labels"])})


def ways_of(task: ModelTask) -> list[Declared]:
    """All ways that it tries, in their order."""
    declared = declared_of(task)
    return [variants.from_spec(row, declared) for row in task.job.spec["ways"]]


def files_of(task: ModelTask) -> Files:
    """What the files of the model say.

    Raises:
        Gone: they were removed.
    """
    folder = home(task.job)
    if not (folder / FILES).is_dir():
        raise Gone(wording.message("model_task.files_gone"))
    if not (folder / SUMMARY).is_file():  # of a version of the platform that did not keep it
        disk_files.write_json(
            folder / SUMMARY, replies.encode_files(inspections.of_trial(folder, declared_of(task))[1])
        )
    return read_summary(folder)


def read_summary(folder: Path) -> Files:
    """Return what the inspector wrote about the files of a model."""
    return replies.decode_files(json.loads((folder / SUMMARY).read_bytes()))


class Gone(DomainError, code="gone"):
    """The files of the trial are no longer there."""


def params(task: ModelTask) -> dict[str, Any]:
    """Return the parameters of the program."""
    files = files_of(task)
    weights = find_weights(home(task.job) / FILES)
    return {
        **variants.describe(files, ways_of(task)),
        "weights": str(weights.relative_to(home(task.job))) if weights else "",
        "names": task.job.spec["names"], "most": MAX_IMAGES, "max_pixels": env.MAX_IMAGE_PIXELS, "seconds": SECONDS,
    }  # fmt: skip


def publish(task: ModelTask, attempt: Attempt) -> None:
    """Store which variants are the best; idempotent."""
    outputs = RunDir.for_attempt(task.job_id, attempt.number).outputs
    result = results.read(outputs, ways=len(task.job.spec["ways"]))
    if not result.pictures:
        return
    works = any(variant.score > 0 for variant in result.best)
    figures = {
        "best": [{"number": variant.number, "score": variant.score, "sure": variant.sure} for variant in result.best],
        "fallen": result.counts(), "with_truth": result.with_truth, "pictures": len(result.pictures),
        "tried": result.tried, "attempt": attempt.number, "works": works,
    }  # fmt: skip
    message = wording.Message() if works else wording.message("model_task.nothing_works")
    ModelTask.objects.filter(pk=task.pk, made=None).update(figures=figures, message=message)


def use(*, task: ModelTask, rank: int, by: User, name: str = "") -> ModelVersion:
    """Create the version that an import with the declaration of one of the best variants would create.

    Args:
        task: which `by` may edit.
        rank: of the way among those that are shown, 1 is the best.
        name: of the new model, in place of the one that was given.

    Raises:
        NotAllowed: the user's roles do not allow importing models.
        AlreadyUsed: a version was made of it.
        Invalid: no such way is among the best.
        Gone: the files, or the model that gets the version, were removed.
        DomainError: see `models.register`.
    """
    by.require(Action.MODELS_MANAGE)
    if task.made is not None:
        raise _already_used(task.made)
    shown = task.figures.get("best", ())
    if not 1 <= rank <= len(shown):
        raise Invalid(_("Choose one of the listed interpretations."), field="rank")
    files, spec, owner = files_of(task), task.job.spec, task.job.owner
    declared = variants.as_import(files, ways_of(task)[shown[rank - 1]["number"]])
    fields = {field: spec[field] for field in ("name", "description", "visibility")}
    if name:
        fields["name"] = name
    version = registry.register(
        user=owner, bring=partial(copy_files, home(task.job) / FILES), origin=origin_of(spec["origin"]),
        model=_model(spec["model"], owner), declared=declared, made=partial(_record_version, task), **fields,
    )  # fmt: skip
    disk_files.remove_tree(home(task.job))
    for waiting in task.imports.all():
        disk_files.remove_tree(waiting.folder)
        waiting.delete()
    task.refresh_from_db()
    return version


def _model(number: int | None, owner: User) -> Model | None:
    if number is None:
        return None
    model: Model | None = Model.objects.editable_by(owner).filter(pk=number).first()
    if model is None:
        raise Gone(wording.message("model_task.model_gone"))
    return model


def _record_version(task: ModelTask, version: ModelVersion) -> None:
    """Keep the version, unless another one was made meanwhile: the transaction that makes this one fails then."""
    if not ModelTask.objects.filter(pk=task.pk, made=None).update(made=version, message=wording.Message()):
        other = ModelTask.objects.select_related("made__model").get(pk=task.pk).made
        raise _already_used(other or version)


def _already_used(version: ModelVersion) -> AlreadyUsed:
    message = _("%(version)s was already created from this test. Open it, or import the model again.")
    return AlreadyUsed(message % {"version": version}, version=version.pk)


def origin_of(spec: Mapping[str, Any]) -> Origin:
    """Decode what `origin_spec` encoded."""
    job = Job.objects.filter(pk=spec["job"] or 0).first()
    return Origin(spec["source"], job, spec["attempt"] if job else 0, spec["label"])


def copy_files(folder: Path, into: Path) -> None:
    """Copy a folder of model files; links stay links, which the inspector refuses."""
    shutil.copytree(folder, into, symlinks=True, copy_function=_copy)


def _copy(source: str, target: str) -> None:
    with Path(source).open("rb") as file:
        copies.copy(file, Path(target))


@contextmanager
def examples(uploads: Sequence[Any]) -> Iterator[list[Example]]:
    """Yield form files or finished uploads as images to run a model on; closes them afterwards."""
    opened: list[BinaryIO] = []
    try:
        pictures = []
        for upload in uploads:
            if isinstance(getattr(upload, "file", None), Path):  # an upload in parts
                opened.append(upload.file.open("rb"))
                pictures.append(Example(Path(upload.filename).name, opened[-1]))
            else:
                pictures.append(Example(Path(upload.name or "picture").name, upload))
        yield pictures
    finally:
        for file in opened:
            file.close()
