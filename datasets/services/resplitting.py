"""The plan of a version that splits another one again; `committing` makes the version by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message, message
from datasets import shapes
from datasets.formats import stored
from datasets.formats.neutral import ImageItem
from datasets.formats.writer import StoredImage
from datasets.models import AssetClass, DatasetVersion, Import
from datasets.services import rewriting
from datasets.services.splitting import Item, Wish, deal, groups_of


class CannotSplit(DomainError, code="cannot_split"):
    """The images cannot be split as requested."""


def items_of(version: DatasetVersion) -> list[Item]:
    classes: dict[int, list[int]] = {}
    for asset, class_id in AssetClass.objects.filter(version=version).values_list("asset", "class_id"):
        classes.setdefault(asset, []).append(class_id)
    rows = version.assets.order_by("pk").values_list("pk", "path", "sha256")
    return [Item(path, sha256, classes.get(pk, ())) for pk, path, sha256 in rows]


def dealt_out(items: list[Item], wish: Wish) -> dict[str, str]:
    groups = groups_of(items, wish)
    if groups < len(wish.ratios):
        raise CannotSplit(
            ngettext(
                "There is only %(groups)s group of images for %(splits)s splits. Change the grouping.",
                "There are only %(groups)s groups of images for %(splits)s splits. Change the grouping.",
                groups,
            )
            % {"groups": groups, "splits": len(wish.ratios)},
            groups=groups,
        )
    return deal(items, wish)


def write_plan(row: Import) -> None:
    """Write the plan by which `committing` makes the version; a worker that takes over writes it again."""
    version = row.source_version
    if version is None:
        raise CannotSplit(_("The version to split no longer exists."))
    dealt = dealt_out(items_of(version), Wish(**row.split))

    def images() -> Iterator[StoredImage]:
        for image in stored_images(version):
            image.split = dealt[image.path]
            yield image

    facts = {"task": version.task, "classes": version.classes, "coco_head": coco_head(version)}
    rewriting.write(row, version, images(), **facts)


def coco_head(version: DatasetVersion) -> dict[str, Any]:
    """What the version's COCO file says beyond the platform's own, as a plan keeps it."""
    head = stored.head(version.path)
    own = {"id", "name", "supercategory"}
    extra = ([item["id"], {k: v for k, v in item.items() if k not in own}] for item in head.get("categories", []))
    info = {name: value for name, value in head.get("info", {}).items() if name not in {"description", "version"}}
    categories = [pair for pair in extra if pair[1]]
    return {"info": info, "licenses": head.get("licenses", []), "categories": categories}


def heads_of_classes(version: DatasetVersion) -> list[dict[str, Any]]:
    """The classes as the version's COCO file has them: {"id", "name", "keypoints", …}; [] where it has none."""
    return list(stored.head(version.path).get("categories", []))


def split_new(items: list[ImageItem], checked: Mapping[str, Mapping[str, Any]], fields: Mapping[str, Any]) -> None:
    """Split the images of an import as requested, whatever the data says.

    Args:
        checked: source → what was found on checking the image, its hash above all.
        fields: fields of a `Wish`.
    """
    by_path = {
        item.path: Item(
            item.path,
            checked[item.source]["sha256"],
            {shape.class_id for shape in item.shapes} | ({item.label} if item.label is not None else set()),
        )
        for item in items
    }
    split_by_path = deal(by_path.values(), Wish(**fields))
    for item in items:
        item.split = split_by_path[item.path]


def stored_images(version: DatasetVersion) -> Iterator[StoredImage]:
    """Yield the images of a version with all their data, from its own files."""
    free = max((image["id"] for image in _listed(version)), default=0)
    for line, image, drawn in stored.lines(version.path):
        if image is None:
            free += 1
        shapes_ = [{**entry, "kind": shapes.of_stored(entry).name} for entry in drawn]
        for entry in shapes_:
            del entry["image_id"]
        size = (version.images_path / line["path"]).stat().st_size
        yield StoredImage(
            **line,
            size_bytes=size,
            id=image["id"] if image else free,
            shapes=shapes_,
            annotated=image is not None,
            extra={name: value for name, value in (image or {}).items() if name not in stored.IMAGE_FIELDS},
        )


def _listed(version: DatasetVersion) -> Iterator[dict[str, Any]]:
    return stored.images(version.path) if (version.path / stored.NAME).exists() else iter(())


def _story(row: Import) -> Message:
    return message("version.split", of=str(row.source_version), **row.split)


REWRITE = rewriting.Rewrite("", write_plan, _story)
