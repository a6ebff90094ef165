"""What a detector gets wrong by kinds, and a dataset of the images behind them, to mend their annotation."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import ids, titles
from aiplatform.lib.archive_names import safe_name
from aiplatform.lib.errors import DomainError, Invalid, NotFound, Refusals
from aiplatform.lib.files import atomic_writer, open_beneath
from aiplatform.lib.numbers import finite
from aiplatform.lib.wording import Message, message
from datasets.formats.neutral import CLASSES
from datasets.models import Dataset, DatasetVersion, Upload
from datasets.services import datasets, imports, sources, uploads
from inference.evaluation import results
from inference.evaluation.models import Evaluation
from inference.kit.task_kinds.mistaken import KINDS

MAX_IMAGES = 5_000
NAME = "evaluation"  # of the source of imports


class NothingToMend(DomainError, code="nothing_to_mend"):
    """No image is behind what was chosen."""


@dataclass(frozen=True)
class Kind:
    """Mistakes of one kind: how many on how many images, and what AP50 would gain if they were mended (0..1)."""

    name: str
    count: int
    images: int
    gain: float | None


@dataclass(frozen=True)
class Mistakes:
    """Mistakes of all kinds, of the answers from a score on, and AP50 as it is."""

    threshold: float
    ap50: float | None
    kinds: list[Kind]


def read_mistakes(content: Mapping[str, Any]) -> Mistakes | None:
    """Return the mistakes of an evaluation; None for other tasks, older evaluations, and unreadable content."""
    document = content.get("mistakes")
    if not isinstance(document, dict) or not isinstance(document.get("kinds"), dict):
        return None
    kinds = []
    for name in KINDS:
        own = document["kinds"].get(name)
        if not isinstance(own, dict):
            return None
        count, images = (int(finite(own.get(key)) or 0) for key in ("count", "images"))
        kinds.append(Kind(name, count, images, finite(own.get("gain"))))
    kinds.sort(key=lambda kind: -(kind.gain or 0.0))
    return Mistakes(finite(document.get("threshold")) or 0.0, finite(document.get("ap50")), kinds)


def check_kind(kind: str) -> None:
    """Refuse what is no kind of mistake; "" is any image."""
    if kind and kind not in KINDS:
        raise Invalid(_("%(name)s must be one of %(words)s.") % {"name": "mistake", "words": ", ".join(KINDS)},
                      field="mistake")  # fmt: skip


def _check_cell(cell: str) -> None:
    if cell and not re.fullmatch(r"\d{0,6},\d{0,6}", cell):
        raise Invalid(_("A cell is two indices in the confusion matrix: 0,1."), field="cell")


def name_for(evaluation: Evaluation, user: User) -> str:
    """Return a free name of a dataset as initial value."""
    taken = set(Dataset.objects.visible_to(user).values_list("name", flat=True))
    return titles.derive_name(evaluation.job.name, taken=taken, room=datasets.NAME_MAX)


def annotate(evaluation: Evaluation, *, by: User, name: str, mistake: str = "", cell: str = "") -> Dataset:
    """Start creating a dataset of images with a mistake, with their current annotations.

    Args:
        by: sees the evaluation.
        mistake: a kind; or `cell` of the confusion matrix, see `results.images`.

    Raises:
        NotAllowed: the user's roles do not allow it.
        Invalid: no such kind, or nothing was chosen.
        NothingToMend: no image is behind it, or more than 5,000.
        NotFound: the dataset was deleted, or the user may not use it.
        NameTaken, TooLarge, DiskFull: see `datasets.create` and `uploads.create`.
    """
    by.require(Action.DATASETS_CREATE)
    refusals = Refusals()
    with refusals:
        results.check_predictions(evaluation)
        check_kind(mistake)
        _check_cell(cell)
        if not mistake and not cell:
            raise Invalid(_("Specify the images: an error type, or a cell of the confusion matrix."),
                          field="mistake")  # fmt: skip
    with refusals:
        datasets.check(owner=by, name=name)
    with refusals:
        version = _version(evaluation, by)
    refusals.end()
    paths = _paths(evaluation, mistake, cell)
    if not paths:
        raise NothingToMend(_("No matching images."))
    if len(paths) > MAX_IMAGES:
        text = _("A dataset can contain at most %(most)s images; %(count)s are selected.")
        raise NothingToMend(text % {"count": f"{len(paths):,}", "most": f"{MAX_IMAGES:,}"})
    length = sum(_bytes(version.images_path / path) for path in paths)
    metadata = {
        sources.KEY: NAME, "filename": f"evaluation-{evaluation.pk}", "evaluation": str(evaluation.pk),
        "mistake": mistake, "cell": cell[:40],
    }  # fmt: skip
    with transaction.atomic():
        upload = uploads.create(owner=by, length=length, metadata=metadata)
        Upload.objects.filter(pk=upload.pk).update(state=Upload.State.DONE)  # the files are on the server already
        dataset = datasets.create(owner=by, name=name, intro="")
        imports.start(dataset=dataset, by=by, upload_id=upload.pk, agreed=True)
    return dataset


def _version(evaluation: Evaluation, by: User) -> DatasetVersion:
    version: DatasetVersion | None = DatasetVersion.objects.usable_by(by).filter(pk=evaluation.version_id or 0).first()
    if version is None:
        raise NotFound(_("The images of this evaluation were deleted or are not accessible to you."))
    return version


def _paths(evaluation: Evaluation, mistake: str, cell: str) -> list[str]:
    rows, _more = results.images(evaluation, cell=cell, mistake=mistake, count=MAX_IMAGES + 1)
    return [str(row["path"]) for row in rows]


def _bytes(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # removed meanwhile
        return 0


def _files(user: User, metadata: Mapping[str, str]) -> Iterator[tuple[Path, str, str]]:
    """Yield the images and a COCO file of their annotations; images with one class each in folders of its name."""
    number = ids.number(metadata.get("evaluation", "")) or 0
    evaluation = Evaluation.objects.visible_to(user).select_related("job").filter(pk=number).first()
    if evaluation is None:
        raise NotFound(_("The evaluation was deleted."))
    version = _version(evaluation, user)
    mistake = metadata.get("mistake", "")
    check_kind(mistake)
    _check_cell(metadata.get("cell", ""))
    paths = set(_paths(evaluation, mistake, metadata.get("cell", ""))[:MAX_IMAGES])
    own = version.assets.filter(path__in=paths)  # what the results say counts only where the version has it
    if version.task == CLASSES:
        names = {entry["id"]: safe_name(str(entry["name"]).replace("/", "_")) for entry in version.classes}
        for index, (path, label) in enumerate(own.values_list("path", "label"), 1):
            yield version.images_path, path, f"{names.get(label, 'none')}/{index:06d}_{PurePosixPath(path).name}"
        return
    selected = set(own.values_list("path", flat=True))
    for path in sorted(selected):
        yield version.images_path, path, f"images/{path}"
    chosen = mistake or metadata.get("cell", "").replace(",", "-")
    draft = Path(settings.DATA_ROOT) / "jobs" / str(evaluation.job_id) / f"mend-{user.pk}-{chosen}.json"
    with atomic_writer(draft) as out:
        out.write(json.dumps(_annotations(version, selected), ensure_ascii=False).encode())
    yield draft.parent, draft.name, "annotations.json"


def _annotations(version: DatasetVersion, paths: set[str]) -> dict[str, Any]:
    """Return the annotations of some images of a version from its own file."""
    with os.fdopen(open_beneath(version.path, "annotations.json"), "rb") as file:
        coco = json.load(file)
    images = [image for image in coco["images"] if image["file_name"] in paths]
    numbers = {image["id"] for image in images}
    own = [annotation for annotation in coco["annotations"] if annotation["image_id"] in numbers]
    return {**coco, "images": images, "annotations": own}


def _story(metadata: Mapping[str, str]) -> Message:
    """Return the story of a version: it is a draft, to be corrected."""
    number = ids.number(metadata.get("evaluation", "")) or 0
    evaluation = Evaluation.objects.select_related("job").filter(pk=number).first()
    return message("evaluation.draft", name=evaluation.job.name) if evaluation else Message()


SOURCE = sources.Source(NAME, _files, _story)
