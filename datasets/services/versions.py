"""Make dataset versions: first the folder, then the rows, then `ready`. Versions never change afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import class_colors
from aiplatform.lib.enqueue import enqueue
from aiplatform.lib.errors import DomainError, Invalid, StillInUse
from aiplatform.lib.files import flush_filesystem, flush_folder, link_or_copy, remove_tree
from aiplatform.lib.wording import Message, message
from datasets import shapes
from datasets.formats import figures as counting
from datasets.formats import writer
from datasets.formats.coco import read as read_coco
from datasets.formats.listing import Listing
from datasets.formats.neutral import NONE, SHAPES, ImageItem, Parsed
from datasets.formats.writer import CocoHead, StoredImage
from datasets.models import Asset, AssetClass, Dataset, DatasetVersion
from datasets.services import report_wording, usage
from datasets.storage import dataset_paths

HARMLESS = {"unlisted_image", "extra_fields"}  # problems of a COCO file that a version can be made of nevertheless
ROWS = 2000  # per transaction: other writers get their turn
Progress = Callable[[int], None]


class AnnotationsRefused(DomainError, code="annotations_refused", status=400):
    """The COCO file does not fit the images."""


def allocate(
    dataset: Dataset,
    *,
    by: User | None,
    parent: DatasetVersion | None = None,
    note: str = "",
    story: Message | None = None,
) -> DatasetVersion:
    """A new version's row and number; invisible to everybody until `publish`."""
    with transaction.atomic():
        Dataset.objects.select_for_update().get(pk=dataset.pk)
        newest = dataset.versions.aggregate(Max("number"))["number__max"] or 0
        return DatasetVersion.objects.create(
            dataset=dataset,
            number=newest + 1,
            created_by=by,
            parent=parent,
            note=note[:200],
            story=story or Message(),
        )


def publish(
    version: DatasetVersion,
    images: Callable[[], Iterable[StoredImage]],
    *,
    task: str,
    classes: list[dict[str, Any]],
    place_images: Callable[[Path], None],
    images_root: str = "",
    coco_head: CocoHead | None = None,
    colors: Mapping[str, str] | None = None,
    on_progress: Progress | None = None,
) -> DatasetVersion:
    """Write the version's folder, then its rows, then make it visible. Safe to run again after a crash.

    Args:
        images: gives the images, each time it is called the same ones in the same order.
        task: what the images carry: SHAPES, CLASSES or NONE of `formats.neutral`.
        place_images: puts every image below the given `images` path (moves, links, or points it elsewhere); called
            again after a crash, with part of its work done.
        images_root: where the images stay when they are left in place.
        coco_head: what a COCO file said about itself, for annotations.json.
        colors: class id → color; None: those of the version before, else the default ones.
        on_progress: called with the number of rows written so far.
    """
    folder = dataset_paths.version_folder(version.dataset, version.number)
    building = dataset_paths.building_folder(version.dataset, version.number)
    head = {"dataset_id": version.dataset_id, "version": version.number, "name": version.dataset.name}
    if not folder.exists():
        building.mkdir(parents=True, exist_ok=True)
        place_images(building / "images")
        written = writer.write(building, images(), task=task, classes=classes, head=head, coco_head=coco_head)
        (building / ".figures").write_text(json.dumps(_figures(written)))
        flush_filesystem(building)
        building.rename(folder)
        flush_folder(folder.parent)
    figures = json.loads((folder / ".figures").read_text())
    _write_rows(version, task, images(), on_progress)
    counted = counting.read(folder)
    with transaction.atomic():
        made = DatasetVersion.objects.filter(pk=version.pk, state=DatasetVersion.State.IMPORTING)
        made.update(
            state=DatasetVersion.State.READY,
            task=task,
            annotated=task != NONE,
            root=str(folder),
            images_root=images_root,
            classes=classes,
            colors=colors or _inherited_colors(version, classes),
            figures=counted,
            **figures,
        )
        Dataset.objects.get(pk=version.dataset_id).save(update_fields=["updated_at"])
        enqueue("datasets.thumbnails", version_id=version.pk)
    version.refresh_from_db()
    return version


def _inherited_colors(version: DatasetVersion, classes: list[dict[str, Any]]) -> dict[str, str]:
    return class_colors.inherit(classes, version.parent.colored_classes if version.parent else ())


def set_colors(version: DatasetVersion, colors: Mapping[str, str]) -> DatasetVersion:
    """Change colors of classes; everything that draws them shows the new ones.

    Args:
        colors: class id → color such as #1c7ed6; classes that are missing keep theirs.

    Raises:
        Invalid: the version has no such class, or a color is not valid.
    """
    current = {str(number): color for number, color in version.class_colors.items()}
    for number, color in colors.items():
        if str(number) not in current:
            raise Invalid(_("Class %(id)s does not exist in this version.") % {"id": str(number)[:20]}, field="colors")
        if not class_colors.COLOR.match(str(color).lower()):
            raise Invalid(_("A color must look like #1c7ed6."), field="colors")
        current[str(number)] = color.lower()
    version.colors = current
    version.save(update_fields=["colors"])
    return version


def _figures(written: writer.Written) -> dict[str, Any]:
    return {
        "manifest_sha256": written.manifest_sha256,
        "image_count": written.images,
        "annotation_count": written.annotations,
        "size_bytes": written.size_bytes,
        "splits": written.splits,
    }


def _write_rows(
    version: DatasetVersion, task: str, images: Iterable[StoredImage], on_progress: Progress | None
) -> None:
    """Write one Asset per image, and its classes. Rows of an interrupted attempt are kept and completed."""
    have = version.assets.count()
    rest = islice(images, have, None)  # same images in the same order: the first `have` are written
    done = have
    while batch := list(islice(rest, ROWS)):
        with transaction.atomic():
            rows = Asset.objects.bulk_create([_row(version, task, image) for image in batch])
            marks = [
                AssetClass(asset=row, version=version, class_id=class_id, split=image.split)
                for row, image in zip(rows, batch, strict=True)
                for class_id in sorted(_classes_of(image))
            ]
            AssetClass.objects.bulk_create(marks)
        done += len(batch)
        if on_progress:
            on_progress(done)


def _row(version: DatasetVersion, task: str, image: StoredImage) -> Asset:
    objects = len(image.shapes) + (image.label is not None)
    unlabelled = Asset.Content.EMPTY if task == SHAPES and image.annotated else Asset.Content.UNSEEN
    return Asset(
        version=version,
        path=image.path,
        sha256=image.sha256,
        width=image.width,
        height=image.height,
        split=image.split,
        label=image.label,
        content=Asset.Content.OBJECTS if objects else unlabelled,
        object_count=objects,
        shapes=[entry for shape in image.shapes for entry in drawn(shape)],
    )


def drawn(shape: dict[str, Any]) -> list[list[Any]]:
    """A COCO annotation as the gallery draws it: [[class id, kind, flat points], …], one per part."""
    kind = shapes.get(shape["kind"])
    return [[shape["category_id"], kind.name, [round(value, 1) for value in part]] for part in kind.drawn(shape)]


def _classes_of(image: StoredImage) -> set[int]:
    ids = {shape["category_id"] for shape in image.shapes}
    if image.label is not None:
        ids.add(image.label)
    return ids


def create_from_coco(
    *,
    dataset: Dataset,
    parent: DatasetVersion,
    coco: Path,
    by: User | None,
    note: str = "",
    colors: Mapping[str, str] | None = None,
) -> DatasetVersion:
    """A new annotated version of `dataset`: the images of `parent` with the annotations of a COCO file.

    Images are shared by hard link (copied where the file system cannot), so this costs no space. Every image of
    the parent is kept; those the file does not name are not annotated. Splits are the parent's; where it has
    none, the file's (`images[].split`). `file_name` must be a path of the parent.

    Args:
        colors: class id → color; None: those of the parent.

    Raises:
        AnnotationsRefused: the file is not COCO, or names images or categories that do not exist.
    """
    listing = Listing(coco.parent, files=[coco.name], images=list(parent.assets.values_list("path", flat=True)))
    parsed = read_coco(listing)
    broken = [problem for problem in parsed.problems.listed if problem.code not in HARMLESS]
    if broken:
        first = broken[0]
        raise AnnotationsRefused(
            message("report.at", path=first.path, says=first.says),
            problems=[report_wording.problem(problem.as_dict()) for problem in broken[:100]],
        )
    named = {item.source: item for item in parsed.images}
    version = allocate(dataset, by=by, parent=parent, note=note)

    def images() -> Iterator[StoredImage]:
        yield from _joined(parent, named)

    def place(target: Path) -> None:
        if parent.images_root:
            if not target.is_symlink():
                target.symlink_to(parent.images_root, target_is_directory=True)
            return
        for path in parent.assets.order_by("id").values_list("path", flat=True).iterator(chunk_size=ROWS):
            goal = target / path
            if not goal.exists():
                goal.parent.mkdir(parents=True, exist_ok=True)
                link_or_copy(parent.images_path / path, goal)

    try:
        return publish(
            version,
            images,
            task=SHAPES,
            classes=[info.as_dict() for info in parsed.classes],
            place_images=place,
            images_root=parent.images_root,
            coco_head=head_of(parsed),
            colors=colors,
        )
    except BaseException:
        discard(version)
        raise


def head_of(parsed: Parsed) -> CocoHead:
    """Return the info of the file and of its classes, for annotations.json."""
    categories = {info.id: info.extra for info in parsed.classes if info.extra}
    return CocoHead(parsed.head.get("info", {}), parsed.head.get("licenses", []), categories)


def _joined(parent: DatasetVersion, named: dict[str, ImageItem]) -> Iterator[StoredImage]:
    """The parent's images in its order, with the annotations and ids of a COCO file."""
    free = max((item.id or 0 for item in named.values()), default=0)
    for asset in parent.assets.order_by("id").iterator(chunk_size=ROWS):
        item = named.get(asset.path)
        if item is None or item.id is None:
            free += 1
        yield StoredImage(
            path=asset.path,
            sha256=asset.sha256,
            width=asset.width,
            height=asset.height,
            size_bytes=(parent.images_path / asset.path).stat().st_size,
            id=item.id if item and item.id is not None else free,
            split=asset.split or (item.split if item else ""),
            shapes=[shape.as_dict() for shape in item.shapes] if item else [],
            annotated=item is not None and item.annotated,
            extra=item.extra if item else {},
        )


def discard(version: DatasetVersion) -> None:
    """Undo a version that never became ready: folders and rows."""
    if version.state == DatasetVersion.State.READY or version.pk is None:
        return
    remove_tree(dataset_paths.building_folder(version.dataset, version.number))
    remove_tree(dataset_paths.version_folder(version.dataset, version.number))
    version.delete()


def delete(version: DatasetVersion, *, by: User) -> None:
    """Delete one version and its files. Data left in place on the server is not touched.

    Raises:
        StillInUse: naming who uses it.
    """
    users = usage.users_of(version)
    if users:
        raise StillInUse(
            _("Version %(number)d is still used by %(users)s.")
            % {"number": version.number, "users": ", ".join(users[:10])},
            users=users,
        )
    folder, thumbnails = version.path, dataset_paths.thumbnail_folder(version)
    Dataset.objects.get(pk=version.dataset_id).save(update_fields=["updated_at"])
    version.delete()
    remove_tree(folder)
    remove_tree(thumbnails)
