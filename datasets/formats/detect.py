"""Detect the format of a folder, read it, and account for every file in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.registry import Registry
from aiplatform.lib.wording import message
from datasets.formats import coco, cvat, file_kinds, folders, images, label_studio, labelme, masks, voc, yolo
from datasets.formats.class_texts import ClassTexts
from datasets.formats.listing import Listing
from datasets.formats.neutral import Parsed
from datasets.formats.problems import natural

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise


MAX_FOLDERS = 5  # that a report names
PER_IMAGE = {"voc", "labelme"}  # formats with an annotation file of its own for each image


@dataclass(frozen=True, slots=True)
class Format:
    """A way in which data sets are laid out.

    Args:
        fits: whether a folder is laid out so.
        read: makes a `Parsed` of it; pure, and without a guess where two files contradict each other.
        nameless: its files may hold classes without names, so people may name them before the import.
    """

    name: str
    label: StrPromise | str
    fits: Callable[[Listing], bool]
    read: Callable[[Listing], Parsed]
    nameless: bool = False


#: In the order they are tried, the most telling first.
FORMATS: Registry[Format] = Registry("format")
FORMATS.register(
    Format("coco", "COCO", coco.fits, coco.read),
    Format("voc", "Pascal VOC", voc.fits, voc.read),
    Format("cvat", "CVAT for images", cvat.fits, cvat.read),
    Format("label-studio", "Label Studio", label_studio.fits, label_studio.read),
    Format("labelme", "LabelMe", labelme.fits, labelme.read),
    Format("yolo", "YOLO", yolo.fits, yolo.read, nameless=True),
    Format("masks", _("Mask images"), masks.fits, masks.read, nameless=True),
    Format("folders", _("One folder per class"), folders.fits, folders.read),
    Format("images", _("Images only"), lambda listing: bool(listing.images), images.read),
)


def detect(listing: Listing) -> str:
    """Return the name of the format; "images" for a folder of images only, "" for neither."""
    return next((format_.name for format_ in FORMATS if format_.fits(listing)), "")


def read(listing: Listing, format_name: str, *, images_only: bool = False) -> Parsed:
    """Read the folder as `format_name` and report what is there but was not read.

    Args:
        images_only: a user wants no annotations, so that those which are there are noted and no problem.
    """
    parsed = FORMATS.get(format_name).read(listing)
    for item in parsed.images:
        if item.stated and not item.shapes and item.label is None:
            item.annotated = False
    _report_classes(parsed)
    boxes = [shape.bbox for item in parsed.images if not item.relative for shape in item.shapes]
    if boxes and all(max(x + across, y + down) <= 1 for x, y, across, down in boxes):
        parsed.problems.add("", "fractions", message("report.fraction_boxes"))
    if parsed.format not in {"folders", "masks", "images"} and folders.fits(listing):
        _report_class_folders(listing, parsed)
    _account(listing, parsed, images_only=images_only)
    for folder, (mask, image) in listing.unsure_masks.items():
        parsed.problems.add(folder, "unsure_masks", message("report.unsure_masks", mask=mask, image=image))
    for folder, (mask, image) in listing.detected_masks.items():
        parsed.problems.note(folder, "detected_masks", message("report.detected_masks", mask=mask, image=image))
    return parsed


def _report_classes(parsed: Parsed) -> None:
    """Name classes that no reader can tell apart."""
    for name, count in Counter(info.name for info in parsed.classes).items():
        if count > 1:
            parsed.problems.add("", "same_class_name", message("report.same_class_name", name=name, count=count))


def _report_class_folders(listing: Listing, parsed: Parsed) -> None:
    """Report folders that may be classes where annotation files were read.

    It is a problem only where an image has nothing else that says what it shows.
    """
    names = sorted(folders.class_names(listing), key=natural)
    shown = ", ".join(names[:MAX_FOLDERS]) + (", …" if len(names) > MAX_FOLDERS else "")
    bare = sum(not image.annotated for image in parsed.images)
    if parsed.format in PER_IMAGE and bare:
        parsed.problems.add("", "class_folders", message("report.class_folders_lost", names=shown), count=bare)
    else:
        parsed.problems.note("", "class_folders", message("report.class_folders", names=shown))


def is_unlabelled(parsed: Parsed) -> bool:
    """Whether nothing annotated was read although files or objects are there that were meant to be.

    An image that was checked and found empty is annotated.
    """
    counts = parsed.problems.counts
    if any(image.shapes or image.label is not None for image in parsed.images):
        return False
    return bool(parsed.problems.skipped or any(counts[code] for code in file_kinds.LABELS))


def _account(listing: Listing, parsed: Parsed, *, images_only: bool) -> None:
    """Give every file that became no image and was not read its place in the report."""
    pictures = set(listing.images)
    others_read = any(image.annotated for image in parsed.images)
    class_texts = ClassTexts(listing)
    for name in listing.files:
        if name in parsed.labels or name in pictures:
            continue
        if name in listing.masks:
            tell = parsed.problems.note if others_read or images_only else parsed.problems.add
            tell(name, "mask_not_read", message("report.mask_not_read"))
            continue
        sort, says = file_kinds.describe(listing.root, name)
        if sort == "other_file" and class_texts.has(name):
            sort, says = "class_texts", file_kinds.SENTENCES["class_texts"]
        if sort == "other_labels" and not others_read:
            sort, says = "unread_labels", message("report.unread_labels")
        lost = sort in file_kinds.LOST or (sort in file_kinds.LABELS and not images_only)
        tell = parsed.problems.add if lost else parsed.problems.note
        tell(name, sort, says)


def sort_of(listing: Listing, name: str) -> str:
    """What a file is that is neither an image nor was read: a key of `file_kinds.SENTENCES`."""
    return file_kinds.sort_of(listing.root, name)


def files_of(listing: Listing, parsed: Parsed) -> dict[str, int]:
    """How many files there are: as images, as labels, and left out for a reason that the report names."""
    taken = len(parsed.images)
    labels = len(parsed.labels)
    return {
        "total": len(listing.files) + listing.litter,
        "images": taken,
        "labels": labels,
        "left_out": len(listing.files) - taken - labels,
        "litter": listing.litter,
    }
