"""Keep pictures that a service or a device answered wrongly, and make a dataset of them."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles, zips
from aiplatform.lib.archive_names import safe_name
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import Message, message
from datasets.formats.neutral import CLASSES, SHAPES
from datasets.models import Dataset, Upload
from datasets.services import datasets, imports, sources, uploads
from datasets.storage import image_files
from inference.registry import prediction_shapes
from inference.serving.feedback.models import ServiceSample
from inference.serving.limits import limits_of
from inference.serving.models import Service

if TYPE_CHECKING:
    from inference.delivery.edge.models import EdgeGroup

    Holder = Service | EdgeGroup  # what predicted: a service, or the devices of a group

MAX_BYTES = 32 << 20  # of one picture
MAX_SAMPLES = 1000  # of one service that wait for annotation
MAX_BYTES_TOGETHER = 1 << 30
BY_RULE = 0.5  # of both, that pictures kept by a rule may take
MAX_PREDICTIONS = 2000
MAX_BOXES = 100  # drawn on one image
MAX_JSON_BYTES = 1_000_000
RETENTION = timedelta(days=90)


@dataclass(frozen=True)
class HolderKind:
    """Rows that keep images: services, and what other packages register.

    Attributes:
        folder: of their files below the data folder; a folder in it for each row.
    """

    model: Any
    folder: str

    @property
    def name(self) -> str:
        return str(self.model.__name__)


def _story(metadata: Mapping[str, str]) -> Message:
    """Return the story of a version: it is a draft, to be corrected."""
    return message("service.draft", name=str(metadata.get("holder", ""))[:100])


#: Uploads of these images; they carry the files themselves.
SOURCE = sources.Source("feedback", None, _story)
HOLDERS: Registry[HolderKind] = Registry("holder of images")
HOLDERS.register(HolderKind(Service, "services"))
#: Endings of the pictures in the archive, by content.
ENDINGS = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "BMP": "bmp", "GIF": "gif", "TIFF": "tif", "HEIF": "heic"}


class TooManySamples(DomainError, code="too_many_samples"):
    """Too many images wait for annotation."""


class NoSamples(DomainError, code="no_samples"):
    """There is nothing to annotate."""


def store(
    *,
    holder: Holder,
    picture: bytes,
    answers: Any = None,
    note: str = "",
    by: User | None,
    why: str = "",
    model_name: str = "",
    device: str = "",
) -> ServiceSample:
    """Store an image with its predictions; the same image once, with its latest predictions.

    Args:
        holder: the service that answered, or the group of the device that did.
        by: who found it wrong; None: `why` is the rule that kept it, and what somebody found wrong stays theirs.
        answers: `predictions` of an answer of `predict`; those with a box become the draft of its annotation.
        model_name: what answered; "": what the holder answers with now.
        device: the name of the device.

    Raises:
        Invalid: it is no picture, or too large, or the answers are no list of objects.
        TooManySamples: 1,000 pictures, or 1 GiB, wait already.
        TooLarge, DiskFull: there is no room.
    """
    if len(picture) > MAX_BYTES:
        raise Invalid(_("The image is larger than %(most)s MiB.") % {"most": MAX_BYTES >> 20}, field="image")
    predictions = [] if answers is None else answers
    if not _are_answers(predictions):
        raise Invalid(_("answers must be the predictions of the endpoint: a list of objects."), field="answers")
    try:
        facts = image_files.inspect(io.BytesIO(picture))
    except image_files.BadImage as exc:
        raise Invalid(str(exc), field="image") from None
    if by is None and (existing := holder.samples.filter(sha256=facts.sha256).first()) is not None:
        stored: ServiceSample = existing  # it waits, or was annotated: a rule has nothing to add
        return stored
    if by is None and not has_room(holder):
        raise TooManySamples(
            _("The limit of images waiting for annotation is reached; no more are stored. Annotate those first.")
        )
    waiting = holder.samples.filter(dataset=None)
    if waiting.count() >= MAX_SAMPLES or sum(waiting.values_list("size_bytes", flat=True)) > MAX_BYTES_TOGETHER:
        raise TooManySamples(
            _("The limit of images waiting for annotation is reached; no more are stored. Annotate those first.")
        )
    uploads.require_room(owner=holder.owner, size_bytes=len(picture))
    file = ServiceSample(**_at(holder), sha256=facts.sha256).file
    file.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    temporary = file.with_name(f"{facts.sha256}.{secrets.token_hex(4)}")
    try:
        temporary.write_bytes(picture)
        temporary.replace(file)
    finally:
        temporary.unlink(missing_ok=True)
    sample, _made = ServiceSample.objects.update_or_create(
        **_at(holder),
        sha256=facts.sha256,
        defaults={
            "kind": facts.kind,
            "width": facts.width,
            "height": facts.height,
            "size_bytes": len(picture),
            "model_name": (model_name or holder.model_name)[:130],
            "device": device[:100],
            "answers": predictions,
            "note": note[:500],
            "why": why,
            "dataset": None,
            "by": by,
            "at": now(),
        },
    )
    return sample


def _at(holder: Holder) -> dict[str, Any]:
    return {"service": holder} if isinstance(holder, Service) else {"group": holder}


def has_room(holder: Holder) -> bool:
    """Return whether rules may store more images: a part of the room is reserved for reports of users."""
    rows = holder.samples.filter(dataset=None).exclude(why="")
    size_bytes = sum(rows.values_list("size_bytes", flat=True))
    return rows.count() < BY_RULE * MAX_SAMPLES and size_bytes < BY_RULE * MAX_BYTES_TOGETHER


def _are_answers(value: Any) -> bool:
    if (
        not isinstance(value, list)
        or len(value) > MAX_PREDICTIONS
        or not all(isinstance(entry, dict) for entry in value)
    ):
        return False
    try:
        return len(json.dumps(value, allow_nan=False)) <= MAX_JSON_BYTES
    except (ValueError, TypeError, RecursionError):
        return False  # no number that JSON knows


def waiting(holder: Holder) -> list[ServiceSample]:
    """Pictures that no dataset was made of yet, newest first; `until` says when each goes."""
    rows = list(holder.samples.filter(dataset=None).select_related("by"))
    days = timedelta(days=_days(holder))
    for row in rows:
        row.until = row.at + (days if row.why else RETENTION)
    return rows


def shown(rows: Sequence[ServiceSample]) -> Sequence[ServiceSample]:
    """Return rows with `boxes`, the predicted boxes as their page draws them."""
    for row in rows:
        row.boxes = [
            {
                "x": box[0],
                "y": box[1],
                "w": box[2] - box[0],
                "h": box[3] - box[1],
                "name": str(entry.get("name", ""))[:50],
            }
            for entry in row.answers[:MAX_BOXES]
            if (box := prediction_shapes.box_of(entry, row.width, row.height)) is not None
        ]
    return rows


def _days(holder: Holder) -> int:
    """How long pictures that a rule kept wait."""
    return limits_of(holder)["keep_days"] if isinstance(holder, Service) else holder.keep_days


def remove(*, holder: Holder, sample: int) -> bool:
    """Forget a picture; whether there was one."""
    row = holder.samples.filter(pk=sample).first()
    if row is None:
        return False
    _delete(row)
    return True


def _delete(row: ServiceSample) -> None:
    row.delete()
    row.file.unlink(missing_ok=True)


def annotate(*, holder: Holder, name: str, by: User, chosen: Collection[str] = ()) -> Dataset:
    """Make a dataset of the pictures that wait, the answers on them as the first draft of its annotation.

    Args:
        chosen: keys of the pictures to take, as a form sends them; empty for all.

    Raises:
        NoSamples: no picture waits.
        NameTaken, Invalid, TooLarge, DiskFull: as datasets are made.
    """
    rows = [row for row in waiting(holder) if row.file.is_file() and (not chosen or str(row.pk) in chosen)]
    if not rows:
        raise NoSamples(_("No images are waiting for annotation."))
    datasets.check(owner=by, name=name)
    entries = list(_entries(holder, rows))
    metadata = {"filename": "samples.zip", sources.KEY: SOURCE.name, "holder": holder.name}
    upload = uploads.create(owner=by, length=zips.size(entries), metadata=metadata)
    try:
        with upload.file.open("wb") as out:
            out.writelines(zips.blocks(entries))
            out.flush()
            os.fsync(out.fileno())
        return _import_samples(holder, rows, upload, name, by)
    except BaseException:
        uploads.terminate(upload)
        raise


@transaction.atomic
def _import_samples(holder: Holder, rows: Sequence[ServiceSample], upload: Upload, name: str, by: User) -> Dataset:
    """Import an archive of these images; only the first of concurrent calls does."""
    type(holder)._default_manager.select_for_update(of=("self",)).get(pk=holder.pk)
    dataset = datasets.create(owner=by, name=name, intro=_came_back(holder))
    numbers = [row.pk for row in rows]
    if ServiceSample.objects.filter(pk__in=numbers, dataset=None).update(dataset=dataset) < len(numbers):
        raise NoSamples(_("These images were annotated or removed a moment ago. Check again."))
    uploads.arrived(upload)
    imports.start(dataset=dataset, by=by, upload_id=upload.pk, agreed=True)
    return dataset


def name_for(holder: Holder, user: User) -> str:
    """Return a free name of a dataset as initial value."""
    taken = set(Dataset.objects.filter(owner=user).values_list("name", flat=True))
    return titles.derive_name(holder.name, "feedback", taken=taken, room=25)


def _came_back(holder: Holder) -> str:
    return (_("Feedback from %(name)s") % {"name": holder.name})[:50]


def _entries(holder: Holder, rows: Sequence[ServiceSample]) -> Iterator[zips.Entry]:
    """Yield the files of the archive: images, with a COCO file of predictions, or in folders of classes."""
    version = holder.model_version
    classes = version.classes if version is not None else []
    draft = prediction_shapes.draft_of(version.task) if version is not None else ""
    lines = {row.pk: _line(row, classes) for row in rows}
    labels = {row.pk: _label(lines[row.pk], classes) for row in rows} if draft == CLASSES else {}
    if not all(labels.values()) or len(set(labels.values())) < 2:  # no import sees classes in them
        labels = {}
    names = {row.pk: f"{labels.get(row.pk, 'images')}/{row.sha256[:16]}.{ENDINGS[row.kind]}" for row in rows}
    for row in rows:
        yield names[row.pk], row.file.parent, row.file.name
    drawn = [
        {"image_id": row.pk, **{name: value for name, value in shape.items() if name != "score"}}
        for row in rows
        for shape in (prediction_shapes.to_coco(lines[row.pk], classes) if draft == SHAPES else ())
    ]
    if not drawn:
        return
    images = [
        {"id": row.pk, "file_name": names[row.pk].removeprefix("images/"), "width": row.width, "height": row.height}
        for row in rows
    ]
    coco = {
        "images": images,
        "categories": classes,
        "annotations": [{"id": number, **shape} for number, shape in enumerate(drawn, 1)],
    }
    yield "annotations.json", json.dumps(coco, ensure_ascii=False).encode()


def _line(row: ServiceSample, classes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the predictions of an image with the class ids of the current model, matched by name."""
    ids_by_name = {entry["name"]: entry["id"] for entry in classes}
    predictions = [
        {**entry, "class_id": ids_by_name[name]}
        for entry in row.answers
        if (name := str(entry.get("name"))) in ids_by_name
    ]
    return {"width": row.width, "height": row.height, "predictions": predictions}


def _label(line: dict[str, Any], classes: Sequence[Mapping[str, Any]]) -> str:
    """Return the class of a whole image as the name of a folder; "" if it has none."""
    class_id = prediction_shapes.label_of(line, classes)
    name = next((str(entry["name"]) for entry in classes if entry["id"] == class_id), "")
    return safe_name(name.replace("/", "_")) if name else ""


def sweep() -> None:
    """Delete images after their retention time (90 days for reports of users), and the files of deleted holders."""
    by_rule = ServiceSample.objects.exclude(why="")
    for holder in chain.from_iterable(kind.model.objects.filter(samples__in=by_rule).distinct() for kind in HOLDERS):
        for row in holder.samples.exclude(why="").filter(at__lt=now() - timedelta(days=_days(holder)))[:500]:
            remove(holder=holder, sample=row.pk)
    for row in ServiceSample.objects.filter(at__lt=now() - RETENTION)[:500]:
        _delete(row)
    root = Path(settings.DATA_ROOT)
    for kind in HOLDERS:
        folder, model = root / kind.folder, kind.model
        if folder.is_dir():
            there = {path.name for path in folder.iterdir()}
            gone = there - {str(number) for number in model.objects.values_list("pk", flat=True)}
            for name in gone:
                shutil.rmtree(folder / name, ignore_errors=True)
