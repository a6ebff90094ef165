"""Versions put together into one: classes by their names, images by their bytes.

An image that several versions have comes once: as the first of them that says something about it has it. Where two
different images have one path, the later one goes into a folder named after its version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.errors import DomainError, Refusals
from aiplatform.lib.wording import Message, message
from datasets.formats.neutral import NONE
from datasets.formats.writer import StoredImage
from datasets.models import Asset, Dataset, DatasetVersion, Import
from datasets.services import imports, resplitting, rewriting

NAME = "merged"
MAX_VERSIONS = 100  # versions
MAX_PATH_LENGTH = 500


class CannotMerge(DomainError, code="cannot_merge"):
    """The versions do not go together."""


class Classes:
    """One list of classes, filled from several: equal names, whatever their case, are one class."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def add(self, classes: Sequence[Mapping[str, Any]]) -> dict[int, int]:
        """Add new classes, with their own id if it is free; returns the ids here by the original ids."""
        renamed: dict[int, int] = {}
        for class_ in classes:
            name = " ".join(str(class_["name"]).split()).casefold()
            if name not in self._numbers:
                taken = set(self._numbers.values())
                number = class_["id"] if class_["id"] not in taken else max(taken) + 1
                self._numbers[name] = number
                self.rows.append({"supercategory": "", **class_, "id": number})
            renamed[class_["id"]] = self._numbers[name]
        return renamed


def check(versions: Sequence[DatasetVersion]) -> None:
    """Raise an error for versions that cannot be merged.

    Raises:
        CannotMerge: all reasons at once.
    """
    refusals = Refusals()
    with refusals:
        if not 1 <= len(versions) <= MAX_VERSIONS:
            raise CannotMerge(_("Merge 1 to %(most)s versions.") % {"most": MAX_VERSIONS})
    tasks = {version.task: version for version in versions if version.task != NONE}
    with refusals:
        if len(tasks) > 1:
            first, other, *_rest = tasks.values()
            facts = {"first": first, "one": first.get_task_display(), "other": other, "two": other.get_task_display()}
            raise CannotMerge(_("%(first)s has %(one)s, %(other)s has %(two)s: they cannot be merged.") % facts)
    with refusals:
        _check_points(versions)
    refusals.end()


def _check_points(versions: Sequence[DatasetVersion]) -> None:
    """Refuse classes of one name whose objects have other points."""
    points: dict[str, tuple[Any, DatasetVersion]] = {}
    for version in versions:
        for class_ in resplitting.heads_of_classes(version):
            name = str(class_["name"]).strip().casefold()
            own = class_.get("keypoints")
            before, first = points.setdefault(name, (own, version))
            if before != own:
                text = _("The class %(name)s has different keypoints in %(first)s and %(other)s.")
                raise CannotMerge(text % {"name": class_["name"], "first": first, "other": version})


def start(*, versions: Sequence[DatasetVersion], dataset: Dataset, by: User) -> Import:
    """Queue the next version of `dataset`: the images of all versions with their annotations.

    Raises:
        CannotMerge: see `check`.
        NotNow: an import of the dataset is open.
    """
    check(versions)
    return imports.start_from(
        version=versions[0], rewrite=NAME, facts={"versions": [version.pk for version in versions]},
        annotated=any(version.annotated for version in versions), by=by, dataset=dataset,
        images=sum(version.image_count for version in versions),
    )  # fmt: skip


def using(version: DatasetVersion) -> list[str]:
    """List the imports that still put this version together with others."""
    open_ = Import.objects.filter(state__in=Import.OPEN, wanted=NAME).select_related("dataset")
    return [_("import %(dataset)s") % {"dataset": row.dataset} for row in open_ if version.pk in row.split["versions"]]


def _write_plan(row: Import) -> None:
    by_pk = DatasetVersion.objects.select_related("dataset").in_bulk(row.split["versions"])
    versions = [by_pk[number] for number in row.split["versions"] if number in by_pk]
    if len(versions) < len(row.split["versions"]):
        raise CannotMerge(_("A version to be merged no longer exists."))
    check(versions)
    classes = Classes()
    renamed = [classes.add(version.classes) for version in versions]
    categories: dict[int, dict[str, Any]] = {}
    for version, ids in zip(versions, renamed, strict=True):
        for number, more in resplitting.coco_head(version)["categories"]:
            if number in ids:
                categories.setdefault(ids[number], more)
    task = next((version.task for version in versions if version.task != NONE), NONE)
    source = {
        "root": "/", "images_root": "", "shared": True,
        "copied": [str(version.images_path) for version in versions if version.images_root],
    }  # fmt: skip
    rewriting.write_from(
        row, _images(versions, renamed), source, task=task, classes=classes.rows,
        coco_head={"info": {}, "licenses": [], "categories": [[number, more] for number, more in categories.items()]},
    )  # fmt: skip


def _images(
    versions: Sequence[DatasetVersion], renamed: Sequence[Mapping[int, int]]
) -> Iterator[tuple[str, StoredImage]]:
    """Yield each image once, with its location."""
    owners = _owners(versions)
    taken, drawn, number = set[str](), 0, 0
    for index, version in enumerate(versions):
        for image in resplitting.stored_images(version):
            if owners[image.sha256] != index:
                continue
            source = str(version.images_path / image.path)
            number += 1
            image.id, image.path = number, _free(image.path, version, taken)
            image.extra = {name: value for name, value in image.extra.items() if name != "license"}
            if image.label is not None:
                image.label = renamed[index].get(image.label)
            for shape in image.shapes:
                drawn += 1
                shape["id"], shape["category_id"] = drawn, renamed[index][shape["category_id"]]
            taken.add(image.path)
            yield source, image


def _owners(versions: Sequence[DatasetVersion]) -> dict[str, int]:
    """Map the content of each image to the index of the version that gives it."""
    owners: dict[str, tuple[int, bool]] = {}
    for index, version in enumerate(versions):
        rows = version.assets.values_list("sha256", "content", "label").order_by("pk")
        for content, state, label in rows.iterator(chunk_size=5000):
            is_annotated = state != Asset.Content.UNSEEN or label is not None
            if content not in owners or (is_annotated and not owners[content][1]):
                owners[content] = index, is_annotated
    return {content: index for content, (index, _says) in owners.items()}


def _free(path: str, version: DatasetVersion, taken: Collection[str]) -> str:
    folder = titles.derive_name(str(version), room=60)
    while path in taken:
        path = f"{folder}/{path}"
    if len(path) > MAX_PATH_LENGTH:
        raise CannotMerge(_("The path %(path)s is longer than %(most)s characters.") % {
            "path": path[:60], "most": MAX_PATH_LENGTH})  # fmt: skip
    return path


def _story(row: Import) -> Message:
    by_pk = DatasetVersion.objects.select_related("dataset").in_bulk(row.split["versions"])
    return message("version.merged", names=", ".join(str(by_pk[n]) for n in row.split["versions"] if n in by_pk)[:300])


REWRITE = rewriting.Rewrite(NAME, _write_plan, _story)
