"""Read mask images: each value or colour is a class, each connected part of it an object.

The outlines are exact to the pixel, holes included; a part too frayed for a polygon is kept as runs. Value 0 and
black are background; 255 is the undecided border, unless it is the only value there is.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import PurePosixPath

import numpy as np
from PIL import Image

from aiplatform.lib.wording import Worded, message
from datasets.formats import mask_pairs, mask_values, tracing
from datasets.formats.class_lists import ClassNames
from datasets.formats.image_names import report_tie
from datasets.formats.images import unannotated
from datasets.formats.listing import Listing
from datasets.formats.mask_values import Content, Value
from datasets.formats.neutral import SHAPES, ClassInfo, ImageItem, Parsed, Shape
from datasets.formats.outline_shapes import mask_shape
from datasets.shapes import geometry
from datasets.shapes.outlines import spanned
from datasets.shapes.polygon import POLYGON

MAX_VALUES = 256
SOFT_VALUES = 16  # more of them may be smoothed edges or noise
MAX_CHANGES = 0.25  # of pairs of neighbours, in an image of many values
_NUMBERS = re.compile(r"\d+")
_OBJECTS = "segmentationobject"  # VOC's second folder: which object a pixel is of, not which class
#: Cityscapes: an image has up to four masks. Ids of classes say what the others say.
_CLASS_IDS = re.compile(r"[ _.-]labelids$")
_BESIDE_CLASS_IDS = re.compile(r"[ _.-](color|instanceids|labeltrainids)$")
_VOID = {255, (224, 224, 192)}
_BACKGROUNDS = {"background", "_background_", "__background__", "__ignore__", "_ignore_", "ignore", "void"}


def fits(listing: Listing) -> bool:
    """Return whether images have masks."""
    return any(listing.masks.values()) or bool(listing.ambiguous_masks)


def read(listing: Listing) -> Parsed:
    """Read images with the objects of their masks; images without a mask are not annotated."""
    parsed = Parsed(format="masks", task=SHAPES)
    problems = parsed.problems
    items = unannotated(listing)
    read_shapes: list[tuple[ImageItem, Content, Value, Shape]] = []
    contents: list[Content] = []
    kinds: dict[str, str] = {}
    for mask, picture in _used(listing).items():
        listing.tick()
        parsed.labels.add(mask)
        if mask in listing.ambiguous_masks:
            report_tie(problems, mask, PurePosixPath(mask).stem, listing.ambiguous_masks[mask])
            continue
        if not picture:
            problems.add(mask, "mask_without_image", message("report.mask_without_image"))
            continue
        item = items[picture]
        series = _series(mask, picture)
        if kinds.setdefault(picture, series) != series:
            problems.add(mask, "second_mask", message("report.second_mask", image=item.path))
            continue
        try:
            content, layers = _layers(listing, mask)
        except Worded as exc:
            problems.add(mask, "bad_mask_image", exc.worded)
            continue
        item.annotated = True
        contents.append(content)
        for value, pixels in layers:
            read_shapes += [(item, content, value, shape) for shape in _shapes(pixels)]
            item.height, item.width = pixels.shape
            item.exact = True
    names_of = mask_values.unify(contents, listing, problems)
    values = {content.classes[value] for content in contents for value in content.values}
    parsed.labels.update(names_of.files)
    ids = _ids(values, names_of)
    parsed.classes = [ClassInfo(number, name) for number, name in sorted(set(ids.values()))]
    for item, content, value, shape in read_shapes:
        if class_ := ids.get(content.classes[value]):
            shape.class_id = class_[0]
            item.shapes.append(shape)
    if any(value in _VOID for value in values) and not all(value in ids for value in values):
        problems.note("", "void_pixels", message("report.void_pixels"))
    parsed.images = list(items.values())
    return parsed


def _series(mask: str, picture: str) -> str:
    """What masks of one image have in common that are an object each: they differ by a number only.

    Masks in a folder of their image alone are called anything.
    """
    folder, _slash, name = mask.rpartition("/")
    if not mask_pairs.has_name_of(mask, picture):
        return folder
    return f"{folder}/{_NUMBERS.sub('#', name)}"


def _used(listing: Listing) -> dict[str, str]:
    """Masks to read: those of objects only where there are none of classes."""
    classes = {mask: image for mask, image in listing.masks.items() if _OBJECTS not in mask.casefold()}
    used = classes if any(classes.values()) else dict(listing.masks)
    of_classes = {image for mask, image in used.items() if image and _CLASS_IDS.search(_stem(mask))}
    return {m: image for m, image in used.items() if image not in of_classes or not _BESIDE_CLASS_IDS.search(_stem(m))}


def _stem(path: str) -> str:
    return PurePosixPath(path).stem.casefold()


def _layers(listing: Listing, mask: str) -> tuple[Content, list[tuple[Value, np.ndarray]]]:
    """Return the kind of a mask, and value → its pixels, without background.

    Raises:
        Worded: the image does not decode, or holds more values than a mask has.
    """
    try:
        with Image.open(listing.root / mask, formats=("PNG", "BMP", "GIF", "TIFF")) as image:
            flat = (image.getpalette() or []) if image.mode == "P" else []
            plain = image.mode in {"P", "1", "L", "I", "I;16", "I;16B", "I;16L", "RGB"}
            pixels = np.asarray(image if plain else image.convert("RGB"))
    except Exception as exc:  # noqa: BLE001 - decoders raise whatever they meet in a broken file
        error = str(exc)[:100] or type(exc).__name__
        raise Worded(message("report.mask_unreadable", error=error)) from None
    if pixels.ndim == 3:
        packed = (pixels[..., 0].astype(np.int32) << 16) | (pixels[..., 1].astype(np.int32) << 8) | pixels[..., 2]
    else:
        packed = pixels.astype(np.int32)
    kinds, counts = np.unique(packed, return_counts=True)
    if len(kinds) > MAX_VALUES or (pixels.ndim == 2 and _is_soft(kinds, counts)) or _is_noise(packed, len(kinds)):
        raise Worded(message("report.mask_of_many_values", count=len(kinds)))
    layers: list[tuple[Value, np.ndarray]] = []
    for kind in kinds.tolist():
        if kind:
            value: Value = (kind >> 16, kind >> 8 & 255, kind & 255) if pixels.ndim == 3 else kind
            layers.append((value, packed == kind))
    content = Content(
        [value for value, _pixels in layers], mask_values.palette(flat), is_wide=pixels.dtype.itemsize > 1
    )
    return content, layers


def _is_soft(kinds: np.ndarray, counts: np.ndarray) -> bool:
    """Whether two values have nearly all pixels and many others lie between them, as at edges that were smoothed."""
    ends = counts[0] + counts[-1]
    return len(kinds) > SOFT_VALUES and kinds[0] == 0 and 200 <= kinds[-1] <= 255 and ends >= 0.8 * counts.sum()


def _is_noise(packed: np.ndarray, kinds: int) -> bool:
    """Whether many values change from pixel to pixel, as in a photograph."""
    return kinds > SOFT_VALUES and float(np.mean(packed[:, 1:] != packed[:, :-1])) > MAX_CHANGES


def _shapes(pixels: np.ndarray) -> list[Shape]:
    rings = tracing.outlines(pixels)
    if rings is None:
        return [mask_shape(pixels)]
    return [Shape(0, POLYGON.name, spanned([ring]), [ring], geometry.area([ring])) for ring in rings]


def _ids(values: Collection[Value], names: ClassNames) -> dict[Value, tuple[int, str]]:
    """Return value → class id and name. Ids count from 1 in the order of the values; an unnamed class gets its value.

    A number and a colour that a table gives one name are one class.
    """
    used = [value for value in values if value not in _VOID] or list(values)
    ids: dict[Value, tuple[int, str]] = {}
    taken: dict[str, Value] = {}
    for value in sorted(used, key=lambda value: (value,) if isinstance(value, int) else value):
        name = names.by_colour.get(value, "") if isinstance(value, tuple) else names.by_index.get(value, "")
        if name.casefold() in _BACKGROUNDS:
            continue
        if name in taken and isinstance(taken[name], tuple) != isinstance(value, tuple):
            ids[value] = ids[taken[name]]
            continue
        name = name or ("#{:02x}{:02x}{:02x}".format(*value) if isinstance(value, tuple) else _number(value, used))
        if name in taken:
            name = f"{name} ({value})"
        taken[name] = value
        ids[value] = (len(taken), name)
    return ids


def _number(value: int, values: list[Value]) -> str:
    return "object" if len(values) == 1 else str(value)
