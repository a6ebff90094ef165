"""Keep pictures that were answered wrongly, and make a dataset of them."""

from __future__ import annotations

import io
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles, zips
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.numbers import finite
from datasets import pictures
from datasets.models import Dataset
from datasets.services import datasets, imports, uploads
from inference.feedback.tables import ServiceSample
from inference.models import Service
from inference.services import serving
from inference.task_kinds import TASKS

MOST_BYTES = 32 << 20  # of one picture
MOST_SAMPLES = 1000  # of one service that wait for annotation
MOST_BYTES_TOGETHER = 1 << 30
BY_RULE = 0.5  # of both, that pictures kept by a rule may take
MOST_ANSWERS = 2000
MOST_JSON = 1_000_000
KEPT = timedelta(days=90)
#: Endings of the pictures in the archive, by content.
ENDINGS = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "BMP": "bmp", "GIF": "gif", "TIFF": "tif", "HEIF": "heic"}


class TooManySamples(DomainError):
    """Nobody took the pictures that came back."""

    code = "too_many_samples"


class NoSamples(DomainError):
    """There is nothing to annotate."""

    code = "no_samples"


def keep(
    *, service: Service, picture: bytes, answers: Any = None, note: str = "", by: User | None, why: str = ""
) -> ServiceSample:
    """Keep a picture with what the service said of it; the same picture once, with what was said last.

    Args:
        by: who found it wrong; None: `why` is the rule that kept it, and what somebody found wrong stays theirs.
        answers: `predictions` of an answer of `predict`; those with a box become the draft of its annotation.

    Raises:
        Invalid: it is no picture, or too large, or the answers are no list of objects.
        TooManySamples: 1,000 pictures, or 1 GiB, wait already.
        TooLarge, DiskFull: there is no room.
    """
    if len(picture) > MOST_BYTES:
        raise Invalid(_("The picture has more than %(most)s MiB.") % {"most": MOST_BYTES >> 20}, field="image")
    said = [] if answers is None else answers
    if not _are_answers(said):
        raise Invalid(_("answers are the predictions that the service gave: a list of objects."), field="answers")
    try:
        seen = pictures.inspect(io.BytesIO(picture))
    except pictures.BadImage as exc:
        raise Invalid(str(exc), field="image") from None
    waiting = ServiceSample.objects.filter(service=service, dataset=None)
    if waiting.count() >= MOST_SAMPLES or sum(waiting.values_list("size_bytes", flat=True)) > MOST_BYTES_TOGETHER:
        raise TooManySamples(_("So many pictures wait for annotation that no more are kept. Annotate those first."))
    uploads.require_room(owner=service.owner, size_bytes=len(picture))
    file = ServiceSample(service=service, sha256=seen.sha256).file
    file.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    partly = file.with_name(f"{seen.sha256}.{secrets.token_hex(4)}")
    try:
        partly.write_bytes(picture)
        partly.replace(file)
    finally:
        partly.unlink(missing_ok=True)
    if by is None and (known := service.samples.filter(sha256=seen.sha256).first()) is not None:
        found: ServiceSample = known  # it waits, or was annotated: a rule has nothing to add
        return found
    if by is None and not has_room(service):
        raise TooManySamples(_("So many pictures wait for annotation that no more are kept. Annotate those first."))
    sample, _made = ServiceSample.objects.update_or_create(
        service=service,
        sha256=seen.sha256,
        defaults={
            "kind": seen.kind,
            "width": seen.width,
            "height": seen.height,
            "size_bytes": len(picture),
            "model_name": service.model_name[:130],
            "answers": said,
            "note": note[:500],
            "why": why,
            "dataset": None,
            "by": by,
            "at": now(),
        },
    )
    return sample


def has_room(service: Service) -> bool:
    """Whether a rule may keep more pictures: a part of the room is for what people find wrong."""
    kept = service.samples.filter(dataset=None).exclude(why="")
    together = sum(kept.values_list("size_bytes", flat=True))
    return kept.count() < BY_RULE * MOST_SAMPLES and together < BY_RULE * MOST_BYTES_TOGETHER


def _are_answers(said: Any) -> bool:
    if not isinstance(said, list) or len(said) > MOST_ANSWERS or not all(isinstance(one, dict) for one in said):
        return False
    try:
        return len(json.dumps(said, allow_nan=False)) <= MOST_JSON
    except (ValueError, TypeError, RecursionError):
        return False  # no number that JSON knows


def waiting(service: Service) -> list[ServiceSample]:
    """Pictures that no dataset was made of yet, newest first."""
    return list(ServiceSample.objects.filter(service=service, dataset=None).select_related("by"))


def remove(*, service: Service, sample: int) -> bool:
    """Forget a picture; whether there was one."""
    row = ServiceSample.objects.filter(service=service, pk=sample).first()
    if row is None:
        return False
    row.delete()
    row.file.unlink(missing_ok=True)
    return True


def annotate(*, service: Service, name: str, by: User) -> Dataset:
    """Make a dataset of the pictures that wait, the answers on them as the first draft of its annotation.

    Raises:
        NoSamples: no picture waits.
        NameTaken, Invalid, TooLarge, DiskFull: as datasets are made.
    """
    with transaction.atomic():
        Service.objects.select_for_update().get(pk=service.pk)  # whoever presses second finds nothing left
        rows = [row for row in waiting(service) if row.file.is_file()]
        if not rows:
            raise NoSamples(_("No picture waits for annotation."))
        entries = list(_entries(service, rows))
        dataset = datasets.create(owner=by, name=name, intro=_came_back(service))
        upload = uploads.begin(owner=by, length=zips.size(entries), metadata={"filename": "samples.zip"})
        try:
            with upload.file.open("wb") as out:
                out.writelines(zips.blocks(entries))
                out.flush()
                os.fsync(out.fileno())
            uploads.arrived(upload)
            ServiceSample.objects.filter(pk__in=[row.pk for row in rows]).update(dataset=dataset)
            imports.start(dataset=dataset, by=by, upload_id=upload.pk, agreed=True)
        except BaseException:
            shutil.rmtree(upload.folder, ignore_errors=True)  # its row goes with the transaction
            raise
    return dataset


def name_for(service: Service, user: User) -> str:
    """A free name of a dataset, to begin with."""
    taken = set(Dataset.objects.filter(owner=user).values_list("name", flat=True))
    return titles.derived(service.name, taken=taken, room=25)


def _came_back(service: Service) -> str:
    return (_("Came back from %(name)s") % {"name": service.name})[:50]


def _entries(service: Service, rows: Sequence[ServiceSample]) -> Iterator[zips.Entry]:
    """The files of the archive: pictures, and a COCO file where answers are places."""
    names = {row.pk: f"images/{row.sha256[:16]}.{ENDINGS[row.kind]}" for row in rows}
    for row in rows:
        yield names[row.pk], row.file.parent, row.file.name
    version = service.model_version
    if version is None or version.task not in TASKS:
        return
    categories = [{"id": one["id"], "name": one["name"]} for one in version.classes]
    known = {one["name"]: one["id"] for one in categories}
    drafts = [
        {"image_id": row.pk, "iscrowd": 0, **draft}
        for row in rows
        for one in row.answers
        if (draft := _draft(row, one, known))
    ]
    if not drafts:
        return
    images = [
        {"id": row.pk, "file_name": names[row.pk].removeprefix("images/"), "width": row.width, "height": row.height}
        for row in rows
    ]
    coco = {
        "images": images,
        "categories": categories,
        "annotations": [{"id": number, **draft} for number, draft in enumerate(drafts, 1)],
    }
    yield "annotations.json", json.dumps(coco, ensure_ascii=False).encode()


def _draft(row: ServiceSample, one: Mapping[str, Any], known: Mapping[str, int]) -> dict[str, Any] | None:
    """A COCO box of an answer; None of an answer that is no box, or of a class that the model does not have."""
    box, category = one.get("box"), known.get(str(one.get("name")))
    if category is None or not isinstance(box, list) or len(box) != 4:
        return None
    numbers = [finite(value) for value in box]
    if any(number is None for number in numbers):
        return None
    x1, y1, x2, y2 = (number or 0.0 for number in numbers)
    left, top = max(0.0, x1), max(0.0, y1)
    wide, high = min(x2, row.width) - left, min(y2, row.height) - top
    if wide < 1 or high < 1:
        return None
    return {"category_id": category, "bbox": [left, top, wide, high], "area": wide * high}


def sweep() -> None:
    """Forget pictures after their days (90 of what somebody found wrong), and the files of services that are gone."""
    for service in Service.objects.filter(samples__in=ServiceSample.objects.exclude(why="")).distinct():
        kept = timedelta(days=serving.limits_of(service)["keep_days"])
        for row in service.samples.exclude(why="").filter(at__lt=now() - kept)[:500]:
            remove(service=service, sample=row.pk)
    for row in ServiceSample.objects.filter(at__lt=now() - KEPT)[:500]:
        remove(service=row.service, sample=row.pk)
    root = Path(settings.DATA_ROOT) / "services"
    if root.is_dir():
        there = {path.name for path in root.iterdir()}
        gone = there - {str(number) for number in Service.objects.values_list("pk", flat=True)}
        for name in gone:
            shutil.rmtree(root / name, ignore_errors=True)
