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
from inference.registry.file_copies import TooLarge, copied
from inference.registry.formats.declared import NOTHING, Declared, Files
from inference.registry.formats.folder import weights_in
from inference.registry.import_trials import results
from inference.registry.imports import Brought
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
MOST_PICTURES = 6
MOST_PICTURE_BYTES = 64 << 20
SECONDS = 240  # after which the program begins nothing new
LONGEST = timedelta(minutes=15)  # of the job
Source = ModelVersion.Source


class AlreadyUsed(DomainError):
    """A version was made of this trial before."""

    code = "already_used"


@dataclass(frozen=True)
class Example:
    """A picture that somebody sent: what it was called, and its bytes from where the file stands."""

    name: str
    file: BinaryIO


def home(job: Job) -> Path:
    """Where the files and pictures of a trial lie until one of its ways is used."""
    return Path(settings.DATA_ROOT) / "jobs" / str(job.pk) / HOME


def submit(
    *,
    user: User,
    brought: Brought,
    declared: Declared = NOTHING,
    pictures: Sequence[Example] = (),
    version: DatasetVersion | None = None,
    name: str = "",
    description: str = "",
    visibility: str = Visibility.PRIVATE,
    model: Model | None = None,
) -> ModelTask:
    """Queue a job that runs a model on pictures in every way that is possible, and shows the best.

    Args:
        declared: what is known of it, which is the same in all ways.
        pictures, version: what it is tried on, at most MOST_PICTURES in all; of a dataset version, which `user` may
            use, those with most on them.
        name, description, visibility, model: of what will be made of it, as in `models.register`.

    Raises:
        CannotTry: it is no ONNX file, describes itself, or has outputs that nobody here can read.
        Invalid: what is declared does not fit the files; there is no picture, or there are too many.
        ModelRefused: broken or unsafe files.
        NameTaken: the person has a model of this name.
        DomainError: the queue refuses.
    """
    found, work = Refusals(), registry.workplace()
    with found:
        if model is None:
            registry.check_name(user=user, name=name)
    with found:
        declared.check()
    with found:
        check_pictures(len(pictures), version)
    try:
        with found:
            if brought.torch:
                said = _(
                    "An archive of torch cannot be tried. Export the model as ONNX, or bring it in and declare it."
                )
                raise CannotTry(said)
            brought.bring(work / FILES)
            tried, files = inspections.of_trial(work, declared)
            (work / inspections.PACKED).unlink(missing_ok=True)
            disk_files.write_json(work / SUMMARY, replies.files(files))
        with found:
            _keep_pictures(pictures, work / PICTURES)
        found.end()
        spec = {
            "ways": [variants.as_spec(way, declared) for way in tried], "declared": asdict(declared), "name": name,
            "description": description, "visibility": visibility, "model": model.pk if model else None,
            "origin": _of_origin(brought.origin), "names": [one.name[:200] for one in pictures],
            "version": version.pk if version else None,
        }  # fmt: skip
        called = titles.derive_name(f"{model or name} trial", room=100)
        with transaction.atomic():
            resources: Resources = {
                "cluster": cluster_for(user, None), "cpus": model_jobs.CPUS, "gpus_per_node": 0, "max_runtime": LONGEST,
            }  # fmt: skip
            job = submission.submit(owner=user, kind=model_jobs.KIND, name=called, spec=spec, **resources)
            task = ModelTask.objects.create(job=job, act=ModelTask.Act.TRY)
            home(job).parent.mkdir(parents=True, exist_ok=True)
            work.rename(home(job))
        return task
    finally:
        disk_files.remove_tree(work)


def check_pictures(count: int, version: DatasetVersion | None) -> None:
    """Refuse to try a model on nothing, or on too much."""
    if not count and version is None:
        raise Invalid(_("Choose pictures, or a dataset, to try the model on."), field="pictures")
    if count > MOST_PICTURES:
        said = _("Choose at most %(most)s pictures: a few are enough to see which way is right.")
        raise Invalid(said % {"most": MOST_PICTURES}, field="pictures")


def _keep_pictures(pictures: Sequence[Example], into: Path) -> None:
    into.mkdir(parents=True, exist_ok=True)
    for place, picture in enumerate(pictures[:MOST_PICTURES]):
        try:
            copied(picture.file, into / str(place), most=MOST_PICTURE_BYTES)
        except TooLarge:
            said = _("%(name)s is larger than the %(most)s MiB that a picture may have.")
            facts = {"name": picture.name[:100], "most": MOST_PICTURE_BYTES >> 20}
            raise Invalid(said % facts, field="pictures") from None


def _of_origin(origin: Origin) -> dict[str, Any]:
    source = Source.IMPORT if origin.source == Source.UPLOAD else origin.source  # it will be declared
    job = origin.job.pk if origin.job else None
    return {"source": source, "job": job, "attempt": origin.attempt, "label": origin.label[:300]}


def declared_of(task: ModelTask) -> Declared:
    """What was declared when the trial began."""
    given: Mapping[str, Any] = task.job.spec["declared"]
    return Declared(**{**given, "labels": tuple(given["labels"])})


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
        disk_files.write_json(folder / SUMMARY, replies.files(inspections.of_trial(folder, declared_of(task))[1]))
    return replies.files_of(json.loads((folder / SUMMARY).read_bytes()))


class Gone(DomainError):
    """The files of the trial are no longer there."""

    code = "gone"


def params(task: ModelTask) -> dict[str, Any]:
    """What the program is told."""
    files = files_of(task)
    weights = weights_in(home(task.job) / FILES)
    return {
        **variants.described(files, ways_of(task)),
        "weights": str(weights.relative_to(home(task.job))) if weights else "",
        "names": task.job.spec["names"], "most": MOST_PICTURES, "max_pixels": env.MAX_IMAGE_PIXELS, "seconds": SECONDS,
    }  # fmt: skip


def publish(task: ModelTask, attempt: Attempt) -> None:
    """Keep which ways are the best; may be called again."""
    outputs = RunDir.of(task.job_id, attempt.number).outputs
    found = results.read(outputs, ways=len(task.job.spec["ways"]))
    if not found.pictures:
        return
    works = any(one.score > 0 for one in found.best)
    figures = {
        "best": [{"number": one.number, "score": one.score, "sure": one.sure} for one in found.best],
        "fallen": found.counts(), "with_truth": found.with_truth, "pictures": len(found.pictures), "tried": found.tried,
        "attempt": attempt.number, "works": works,
    }  # fmt: skip
    message = wording.Message() if works else wording.message("model_task.nothing_works")
    ModelTask.objects.filter(pk=task.pk, made=None).update(figures=figures, message=message)


def use(*, task: ModelTask, rank: int, by: User, name: str = "") -> ModelVersion:
    """Make the version that an import with the declaration of one of the best ways would make.

    Args:
        task: which `by` may edit.
        rank: of the way among those that are shown, 1 is the best.
        name: of the new model, in place of the one that was given.

    Raises:
        NotAllowed: this person's roles let nobody bring in models.
        AlreadyUsed: a version was made of it.
        Invalid: no such way is among the best.
        Gone: the files, or the model that gets the version, were removed.
        DomainError: see `models.register`.
    """
    by.require(Action.MODELS_MANAGE)
    if task.made is not None:
        raise _used(task.made)
    shown = task.figures.get("best", ())
    if not 1 <= rank <= len(shown):
        raise Invalid(_("Choose one of the ways that are shown."), field="rank")
    files, spec, owner = files_of(task), task.job.spec, task.job.owner
    declared = variants.as_import(files, ways_of(task)[shown[rank - 1]["number"]])
    about = {field: spec[field] for field in ("name", "description", "visibility")}
    if name:
        about["name"] = name
    version = registry.register(
        user=owner, bring=partial(_brought, home(task.job) / FILES), origin=_origin(spec["origin"]),
        model=_model(spec["model"], owner), declared=declared, made=partial(_made, task), **about,
    )  # fmt: skip
    disk_files.remove_tree(home(task.job))
    task.refresh_from_db()
    return version


def _model(number: int | None, owner: User) -> Model | None:
    if number is None:
        return None
    model: Model | None = Model.objects.editable_by(owner).filter(pk=number).first()
    if model is None:
        raise Gone(wording.message("model_task.model_gone"))
    return model


def _made(task: ModelTask, version: ModelVersion) -> None:
    """Keep the version, unless another one was made meanwhile: the transaction that makes this one fails then."""
    if not ModelTask.objects.filter(pk=task.pk, made=None).update(made=version, message=wording.Message()):
        other = ModelTask.objects.select_related("made__model").get(pk=task.pk).made
        raise _used(other or version)


def _used(version: ModelVersion) -> AlreadyUsed:
    said = _("%(version)s was made of this trial already. Open it, or bring the model in once more.")
    return AlreadyUsed(said % {"version": version}, version=version.pk)


def _origin(kept: Mapping[str, Any]) -> Origin:
    job = Job.objects.filter(pk=kept["job"] or 0).first()
    return Origin(kept["source"], job, kept["attempt"] if job else 0, kept["label"])


def _brought(folder: Path, into: Path) -> None:
    shutil.copytree(folder, into, symlinks=True, copy_function=_copy)


def _copy(source: str, target: str) -> None:
    with Path(source).open("rb") as file:
        copies.copy(file, Path(target))


@contextmanager
def examples(uploads: Sequence[Any]) -> Iterator[list[Example]]:
    """Files as a form has them, or finished uploads, as pictures to try a model on; closed afterwards."""
    opened: list[BinaryIO] = []
    try:
        found = []
        for one in uploads:
            if isinstance(getattr(one, "file", None), Path):  # an upload in parts
                opened.append(one.file.open("rb"))
                found.append(Example(Path(one.filename).name, opened[-1]))
            else:
                found.append(Example(Path(one.name or "picture").name, one))
        yield found
    finally:
        for file in opened:
            file.close()
