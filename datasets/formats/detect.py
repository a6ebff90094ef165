"""Detect the format of a folder and read it."""

from __future__ import annotations

from datasets import shapes
from datasets.formats import coco, folders, images, voc
from datasets.formats.listing import Listing
from datasets.formats.neutral import ImageItem, Parsed, Problems

READERS = {"coco": coco.read, "voc": voc.read, "folders": folders.read, "images": images.read}


def detect(listing: Listing) -> str:
    """ "coco", "voc" or "folders" where annotations are found; "images" where only images are; "" for neither."""
    if coco.fits(listing):
        return "coco"
    if voc.fits(listing):
        return "voc"
    if not listing.images:
        return ""
    return "folders" if folders.fits(listing) else "images"


def read(listing: Listing, format_name: str) -> Parsed:
    """Read the folder as `format_name` and report what is there but cannot be used."""
    parsed = READERS[format_name](listing)
    for name in listing.foreign:
        parsed.problems.add(
            name, "not_an_image", "Only JPEG, PNG, WebP and BMP images are taken; this file was left out."
        )
    return parsed


def fit_to_image(image: ImageItem, width: int, height: int, problems: Problems) -> None:
    """Compare an image's annotations with its real upright size.

    Shapes that lie off the image are left out; those that stick out are cut at its edge where their kind can do
    that (boxes), else kept as they came. A size the annotation file states wrongly is reported.
    """
    if image.width and image.height and (image.width, image.height) != (width, height):
        problems.add(
            image.path,
            "other_size",
            f"The annotations say {image.width} × {image.height}, the upright image is {width} × {height} pixels.",
        )
    image.width, image.height = width, height
    kept = []
    for shape in image.shapes:
        x, y, across, down = shape.bbox
        kind = shapes.get(shape.kind)
        if not kind.meets(shape.bbox, width, height):
            problems.add(image.path, "outside_image", "A shape lies off the image and was left out.")
            continue
        if x < 0 or y < 0 or x + across > width or y + down > height:
            cut = kind.cut(shape.bbox, width, height)
            if cut:
                problems.add(image.path, cut.code, cut.message)
                shape.bbox, shape.segmentation, shape.area = cut.bbox, cut.segmentation, cut.area
            else:
                problems.add(image.path, "beyond_edge", "A shape sticks out of the image; it was kept as it is.")
        kept.append(shape)
    image.shapes = kept
