"""Convert a set to a file (COCO, or an archive of another format), and to a dataset version.

The row is the truth: a worker that dies leaves it `converting` and its claim runs out, the sweep sends it
again. The file is written under another name and renamed, so no partial file has its name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.timezone import now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import disk, zips
from aiplatform.lib.claims import Claim, ClaimLost, Claims
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import sha256_of
from aiplatform.lib.units import Count
from annotation.models import AnnotationSet, Export, LabelClass
from annotation.querysets import LOOKED_AT
from annotation.services import coco, task_creation
from datasets.formats import stored
from datasets.formats.exports import FORMATS, Drawn, Source
from datasets.models import DatasetVersion
from datasets.services import datasets, removal, versions

log = logging.getLogger(__name__)
SILENCE_TIMEOUT = timedelta(seconds=60)  # without a sign of life before another worker takes over
CLAIMS = Claims(ttl=SILENCE_TIMEOUT, epoch="tries")
MAX_ATTEMPTS = 5
RELATED = ("set__source__dataset", "set__project", "created_by", "dataset")
SIGN_EVERY = 5_000  # rows between two signs of life

Live = Q(state__in=[Export.State.QUEUED, Export.State.CONVERTING])


class AlreadyConverting(DomainError, code="already_converting"): ...


class NotFilled(DomainError, code="not_ready"):
    """The images of a large set are still being listed."""


def start(
    *, annotation_set: AnnotationSet, by: User, target: str = "coco", make_version: bool = True, new_dataset: str = ""
) -> Export:
    """Queue a conversion.

    Args:
        make_version: also freeze the result as an annotated version of the source's dataset.
        new_dataset: name of a new dataset of `by` that gets the version instead.

    Raises:
        NameTaken, Invalid: `new_dataset` cannot be used.
        AlreadyConverting: one of this set is under way.
        NotFilled: the set's images are still being listed.
    """
    if not annotation_set.filled:
        raise NotFilled(_("The images of this dataset are still being listed. Try again in a minute."))
    try:
        with transaction.atomic():
            dataset = None
            if new_dataset:
                by.require(Action.DATASETS_CREATE)
                dataset = datasets.create(owner=by, name=new_dataset, intro="")
            export = Export.objects.create(
                set=annotation_set,
                created_by=by,
                target=target,
                make_version=make_version or dataset is not None,
                dataset=dataset,
            )
            enqueue("annotation.convert", export_id=export.pk)
    except IntegrityError:
        raise AlreadyConverting(_("A conversion of this dataset is in progress.")) from None
    return export


def convert(export_id: int) -> None:
    """Do a conversion that is queued or whose worker fell silent; leave all others alone."""
    claim = CLAIMS.acquire(Export.objects.filter(Live, pk=export_id), state=Export.State.CONVERTING)
    if claim is None:
        return
    export = Export.objects.select_related(*RELATED).get(pk=export_id)
    try:
        if not export.sha256:
            _write_file(export, claim)
        if export.make_version and export.version_id is None:
            _freeze(export, claim)
    except ClaimLost:
        log.info("export=%s taken over by another worker", export_id)
        return
    except (DomainError, OSError, coco.BadExport) as exc:
        _discard_dataset(export)
        _end(claim, Export.State.FAILED, detail=disk.sentence() if disk.is_full(exc) else str(exc)[:500])
        log.warning("export=%s failed: %s", export_id, exc)
        return
    except Exception:
        _discard_dataset(export)
        _end(claim, Export.State.FAILED, detail=_("The conversion failed; see the log of the worker."))
        raise
    _end(claim, Export.State.SUCCESS, detail=export.detail)


def sweep() -> None:
    """Queue conversions that no worker holds, and give up those that broke five workers."""
    lost = CLAIMS.free(Export.objects.filter(state=Export.State.CONVERTING))
    lost.filter(tries__gte=MAX_ATTEMPTS).update(
        state=Export.State.FAILED, detail=_("Five worker processes crashed on it."), ended_at=now()
    )
    waiting = Export.objects.filter(state=Export.State.QUEUED, created_at__lt=now() - SILENCE_TIMEOUT)
    for export_id in [*lost.values_list("pk", flat=True), *waiting.values_list("pk", flat=True)]:
        enqueue("annotation.convert", export_id=export_id)
    unfilled = AnnotationSet.objects.filter(filled=False, created_at__lt=now() - SILENCE_TIMEOUT)
    for set_id in unfilled.values_list("pk", flat=True):
        enqueue("annotation.fill", set_id=set_id)


def folder(annotation_set: AnnotationSet) -> Path:
    """Where the files of a set's conversions lie."""
    return Path(settings.DATA_ROOT) / "exports" / f"annotation-{annotation_set.pk}"


def _write_file(export: Export, claim: Claim) -> None:
    annotation_set = export.set
    home = folder(annotation_set)
    home.mkdir(parents=True, exist_ok=True)
    final = _coco_of(export)
    part = home / f"{export.pk}.{export.tries}.part"
    alive = _signs_of_life(claim)
    try:
        with part.open("w", encoding="utf-8") as out:
            report = coco.write(
                out,
                info=_info(export),
                categories=_categories(annotation_set),
                images=_images(annotation_set, alive),
                annotations=_annotations(annotation_set, alive),
                crossings=False,  # every stored shape passed that check when it was saved
            )
        part.replace(final)
        if export.target in FORMATS:
            final = _write_archive(export, part, alive)
    finally:
        part.unlink(missing_ok=True)
    if report.left_out:
        number, why = report.refused[0]
        text = ngettext(
            "%(count)s shape skipped; object %(number)s: %(why)s",
            "%(count)s shapes skipped; object %(number)s: %(why)s",
            report.left_out,
        )
        export.detail = text % {"count": Count(report.left_out), "number": number, "why": why}
    claim.write(
        path=str(final),
        sha256=sha256_of(final),
        size_bytes=final.stat().st_size,
        images=report.images,
        annotations=report.annotations,
        left_out=report.left_out,
        detail=export.detail,
    )
    export.refresh_from_db(fields=["path", "sha256"])


def _coco_of(export: Export) -> Path:
    """The conversion as COCO, which a version is made of whatever the format people fetch is."""
    return folder(export.set) / f"{export.pk}.json"


def _write_archive(export: Export, part: Path, alive: Callable[[], None]) -> Path:
    """The conversion in another format than COCO: a zip of annotations, without the images."""

    def images() -> Iterator[Drawn]:
        for image in task_creation.drawn_images(export.set):
            alive()
            yield image

    labels = export.set.labels.filter(retired=False).order_by("coco_id").values_list("coco_id", "name")
    title = str(export.set.source)
    source = Source(title, [{"id": number, "name": name} for number, name in labels], images, with_images=False)
    with part.open("wb") as out:
        for block in zips.blocks((piece.name, piece.data) for piece in FORMATS.get(export.target).pieces(source)):
            out.write(block)
    final = _coco_of(export).with_suffix(".zip")
    part.replace(final)
    return final


def _info(export: Export) -> dict[str, object]:
    source: DatasetVersion = export.set.source
    return {
        "version": str(export.pk),
        "description": f"{export.set.project.name} / {export.set.name}",
        "contributor": "aiplatform",
        "date_created": export.created_at.isoformat(timespec="seconds"),
        "year": export.created_at.year,
        "source": f"{source.dataset.name} v{source.number}",
    }


def _categories(annotation_set: AnnotationSet) -> Iterator[coco.Category]:
    came = {entry["id"]: entry for entry in stored.head(annotation_set.source.path).get("categories", [])}
    for label in LabelClass.objects.filter(set=annotation_set, retired=False).order_by("coco_id"):
        yield coco.Category(label.coco_id, label.name, label.supercategory, came.get(label.coco_id, {}))


def _images(annotation_set: AnnotationSet, alive: Callable[[], None]) -> Iterator[coco.Image]:
    """Yield the reviewed images: in COCO an image without an object is known to be empty."""
    columns = (
        task_creation.images_of(annotation_set)
        .filter(LOOKED_AT)
        .values_list("image_id", "asset__path", "asset__width", "asset__height", "asset__split")
    )
    for row in columns.iterator(chunk_size=2_000):
        alive()
        yield coco.Image(*row)


def _annotations(annotation_set: AnnotationSet, alive: Callable[[], None]) -> Iterator[coco.Annotation]:
    for number, image, category, rings, kind, came_as, untouched in task_creation.shapes_of(annotation_set):
        alive()
        yield coco.Annotation(number, image, category, rings, kind, came_as, untouched)


def _signs_of_life(claim: Claim) -> Callable[[], None]:
    """A function that renews the claim every some rows, and raises ClaimLost where it was taken over."""
    rows = 0

    def sign() -> None:
        nonlocal rows
        rows += 1
        if rows % SIGN_EVERY == 0:
            claim.renew()

    return sign


def _freeze(export: Export, claim: Claim) -> None:
    source: DatasetVersion = export.set.source
    note = _("Annotated in %(project)s / %(set)s, conversion %(number)s") % {
        "project": export.set.project.name, "set": export.set.name, "number": export.pk,
    }  # fmt: skip
    # A worker that died between making the version and naming it here left it to be found.
    dataset = export.dataset or source.dataset
    version = dataset.versions.filter(parent=source, note=note, annotated=True).first()
    if version is None:
        labels = export.set.labels.filter(retired=False).values_list("coco_id", "colour")
        version = versions.create_from_coco(
            dataset=dataset, parent=source, coco=_coco_of(export), by=export.created_by, note=note,
            colors={str(number): color for number, color in labels},
        )  # fmt: skip
    claim.write(version=version)


def _discard_dataset(export: Export) -> None:
    """Free the name of a new dataset whose only version could not be made."""
    if export.dataset is not None and not export.dataset.versions.exists():
        removal.hide(export.dataset)


def _end(claim: Claim, state: str, *, detail: str = "") -> None:
    claim.release(state=state, detail=detail, ended_at=now())
