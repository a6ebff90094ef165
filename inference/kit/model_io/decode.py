"""Convert image bytes to the model's input, and its output back to the image.

Used by the server and by evaluations alike, so what is evaluated is what is served.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from inference.kit.model_io.spec import InputSpec
from training.presets.tiling.grid import grid

Floats = NDArray[np.float32]
Box = tuple[float, float, float, float]  # x1 y1 x2 y2 in pixels of a picture
FORMATS = ("JPEG", "PNG", "BMP", "WEBP", "GIF", "TIFF")
LETTERBOX_GREY = 114
MAX_CANDIDATES = 1000  # per class, before suppression

# The server's own pixel limit is checked first; Pillow's stays behind it as a second wall.
warnings.simplefilter("error", Image.DecompressionBombWarning)


class BadImage(Exception):
    """The bytes are not an image this platform reads, or it is too large."""


class BadBox(Exception):
    """The requested region is outside the image."""


@dataclass(frozen=True)
class Placement:
    """Where the image is in the model's input: input = image * scale + offset, in pixels."""

    width: int
    height: int
    scale_x: float
    scale_y: float
    offset_x: float = 0.0
    offset_y: float = 0.0

    def to_picture(self, boxes: Floats) -> Floats:
        """Map boxes [n, 4] (x1 y1 x2 y2) from input pixels to image pixels, cut at its edges."""
        moved = np.array(boxes, dtype=np.float32, copy=True)
        moved[:, 0::2] = np.clip((moved[:, 0::2] - self.offset_x) / self.scale_x, 0, self.width)
        moved[:, 1::2] = np.clip((moved[:, 1::2] - self.offset_y) / self.scale_y, 0, self.height)
        return moved

    def to_input(self, boxes: NDArray[Any]) -> Floats:
        """Map boxes [n, 4] (x1 y1 x2 y2) from image pixels to input pixels."""
        scale = np.array((self.scale_x, self.scale_y) * 2)
        return np.asarray(boxes * scale + np.array((self.offset_x, self.offset_y) * 2), np.float32)

    def to_points(self, points: Floats) -> Floats:
        """Map points [n, 2] from input pixels to image pixels; a point may be outside the image."""
        offset, scale = (self.offset_x, self.offset_y), (self.scale_x, self.scale_y)
        return np.asarray((points - np.array(offset)) / np.array(scale), np.float32)


@dataclass(frozen=True)
class Detections:
    """Boxes of one image in its own pixels, best first: boxes [n, 4], scores [n], classes [n] (index).

    `places` [n] are the rows of the model's output that they were read from.
    """

    boxes: Floats
    scores: Floats
    classes: NDArray[np.int64]
    places: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Parcel:
    """Inputs of the parts of a composed model for one image: for each part its sample and the placement of the image.

    `picture` is there where something is to be cut out of it.
    """

    samples: tuple[Floats, ...]
    placements: tuple[Placement, ...]
    picture: Image.Image | None = None


def open_image(data: bytes | str, *, max_pixels: int = 50_000_000) -> Image.Image:
    """Open an image upright (EXIF applied), decoded, any mode.

    Args:
        data: the bytes, or the path of a file.
        max_pixels: refused before decoding when the header claims more.

    Raises:
        BadImage: not one of the formats, damaged, or too large.
    """
    try:
        source = io.BytesIO(data) if isinstance(data, bytes) else data
        with Image.open(source, formats=FORMATS) as opened:
            width, height = opened.size
            if width * height > max_pixels:
                limit = f"{max_pixels / 1e6:.0f} million pixels"
                raise BadImage(f"The picture is {width}×{height}; at most {limit} are accepted.")
            opened.load()
            ImageOps.exif_transpose(opened, in_place=True)
            return opened
    except BadImage:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as exc:
        raise BadImage("The picture is too large to be opened safely.") from exc
    except Exception as exc:  # decoders raise anything: struct.error, IndexError, SyntaxError
        raise BadImage("These bytes are not a readable JPEG, PNG, BMP, WebP, GIF or TIFF picture.") from exc


def looks(image: Image.Image, spec: InputSpec, boxes: Sequence[Box] = ()) -> Iterator[tuple[Floats, Placement]]:
    """What the model looks at, one after the other: the tiles of an upright image, its `boxes`, or all of it.

    Raises:
        BadBox: a box is outside the image.
    """
    if spec.overlap is None:
        yield from (preprocess(image, spec, box) for box in boxes or (None,))
        return
    mode = "RGB" if spec.channels == 3 else "L"
    own = image if image.mode == mode else image.convert(mode)
    grey = (LETTERBOX_GREY,) * 3 if spec.channels == 3 else LETTERBOX_GREY
    for left, top in grid(*image.size, (spec.width, spec.height), spec.overlap):
        ground = Image.new(mode, (spec.width, spec.height), grey)
        ground.paste(own.crop((left, top, min(left + spec.width, own.width), min(top + spec.height, own.height))))
        yield _normal(ground, spec), Placement(*image.size, 1.0, 1.0, -left, -top)


def preprocess(image: Image.Image, spec: InputSpec, box: Box | None = None) -> tuple[Floats, Placement]:
    """Turn an upright image into one sample [channels, height, width] and return its placement.

    Args:
        box: the part to look at, seen with the model's margin; None: all of the image.

    The sample of a composed model is a `Parcel` in an array without dimensions, so that it is stacked and cut as
    others are; its placement is that of its first part, in whose frame such a model answers.

    Raises:
        BadBox: the box is outside the image.
    """
    if spec.parts:
        return _parcel(image, spec, box)
    mode = "RGB" if spec.channels == 3 else "L"
    rgb = image if image.mode == mode else image.convert(mode)
    if box is not None:
        placed, placement = _cut(rgb, spec, box)
    elif spec.resize == "stretch":
        placed = rgb if rgb.size == (spec.width, spec.height) else _scaled(rgb, spec.width, spec.height)
        placement = Placement(*image.size, spec.width / image.width, spec.height / image.height)
    else:
        placed, placement = _letterbox(rgb, spec)
    return _normal(placed, spec), placement


def _parcel(image: Image.Image, spec: InputSpec, box: Box | None) -> tuple[Any, Placement]:
    made: dict[InputSpec, tuple[Floats, Placement]] = {}  # parts that expect the same share it
    alike = [replace(part, name="") for part in spec.parts]
    for part in alike:
        if part not in made:
            made[part] = preprocess(image, part, box)
    samples, placements = zip(*(made[part] for part in alike), strict=True)
    held: NDArray[np.object_] = np.empty((), object)
    held[()] = Parcel(samples, placements, image if spec.cuts else None)
    return held, placements[0]


def _normal(placed: Image.Image, spec: InputSpec) -> Floats:
    """The sample [channels, height, width] of an image of the input's size."""
    pixels = np.asarray(placed)
    return normal(pixels if spec.channels == 3 else pixels[:, :, None], spec)


def normal(pixels: NDArray[np.uint8], spec: InputSpec) -> Floats:
    """The numbers [channels, height, width] that a network takes for pixels [height, width, channels], RGB or grey."""
    step = -1 if spec.blue_first else 1
    planes = np.ascontiguousarray(pixels.transpose(2, 0, 1)[::step])
    mean, std = (np.asarray(value, np.float32)[::step, None, None] for value in (spec.mean, spec.std))
    sample = np.subtract(planes, mean, dtype=np.float32)
    sample /= std
    return sample


def _scaled(image: Image.Image, width: int, height: int) -> Image.Image:
    return image.resize((width, height), Image.Resampling.BILINEAR)


def _letterbox(image: Image.Image, spec: InputSpec) -> tuple[Image.Image, Placement]:
    scale = min(spec.width / image.width, spec.height / image.height)
    width = min(spec.width, max(1, round(image.width * scale)))
    height = min(spec.height, max(1, round(image.height * scale)))
    left, top = (spec.width - width) // 2, (spec.height - height) // 2
    grey = (LETTERBOX_GREY,) * 3 if spec.channels == 3 else LETTERBOX_GREY
    ground = Image.new(image.mode, (spec.width, spec.height), grey)
    ground.paste(_scaled(image, width, height), (left, top))
    return ground, Placement(*image.size, width / image.width, height / image.height, left, top)


def _cut(image: Image.Image, spec: InputSpec, box: Box) -> tuple[Image.Image, Placement]:
    """Crop the box with its surroundings in the shape of the input; outside the image it is grey."""
    side = max((box[2] - box[0]) / spec.width, (box[3] - box[1]) / spec.height) * (1 + 2 * spec.margin)
    left = (box[0] + box[2] - side * spec.width) / 2
    top = (box[1] + box[3] - side * spec.height) / 2
    x0, x1 = max(left, 0.0), min(left + side * spec.width, float(image.width))
    y0, y1 = max(top, 0.0), min(top + side * spec.height, float(image.height))
    if not (x0 < x1 and y0 < y1):
        raise BadBox(f"The region {', '.join(f'{edge:g}' for edge in box)} shows nothing of the picture.")
    start = (round((x0 - left) / side), round((y0 - top) / side))
    end = (round((x1 - left) / side), round((y1 - top) / side))
    size = (max(1, end[0] - start[0]), max(1, end[1] - start[1]))
    grey = (LETTERBOX_GREY,) * 3 if spec.channels == 3 else LETTERBOX_GREY
    ground = Image.new(image.mode, (spec.width, spec.height), grey)
    ground.paste(image.resize(size, Image.Resampling.BILINEAR, box=(x0, y0, x1, y1)), start)
    across, down = size[0] / (x1 - x0), size[1] / (y1 - y0)
    return ground, Placement(*image.size, across, down, start[0] - x0 * across, start[1] - y0 * down)


def detections(
    boxes: Floats,
    scores: Floats,
    placement: Placement,
    *,
    score_threshold: float,
    iou_threshold: float,
    max_detections: int,
) -> Detections:
    """Read one image's boxes out of the model's output.

    Args:
        boxes: [P, 4] x1 y1 x2 y2 in input pixels.
        scores: [P, C] probabilities.
        score_threshold: answers below it are left out.
        iou_threshold: of two boxes of one class overlapping more than this, the better stays.
    """
    row_parts: list[NDArray[np.int64]] = []
    class_parts: list[NDArray[np.int64]] = []
    finite = np.isfinite(boxes).all(axis=1, keepdims=True)
    hits: NDArray[np.bool_] = np.logical_and(scores >= score_threshold, finite)
    for index in np.flatnonzero(hits.any(axis=0)):
        places = np.flatnonzero(hits[:, index])
        order = np.argsort(-scores[places, index], kind="stable")[:MAX_CANDIDATES]
        indices = suppress(boxes[places[order]], iou_threshold, limit=max_detections)
        row_parts.append(places[order][indices])
        class_parts.append(np.full(len(indices), index))
    if not row_parts:
        nothing = np.zeros(0, np.float32)
        return Detections(np.zeros((0, 4), np.float32), nothing, np.zeros(0, np.int64), np.zeros(0, np.int64))
    places, classes = np.concatenate(row_parts), np.concatenate(class_parts)
    confidences = scores[places, classes]
    best = np.argsort(-confidences, kind="stable")[:max_detections]
    indices = places[best]
    return Detections(placement.to_picture(boxes[indices]), confidences[best], classes[best], indices)


def suppress(boxes: Floats, iou_threshold: float, *, limit: int) -> NDArray[np.int64]:
    """Non-maximum suppression of boxes [n, 4] sorted best first; returns the indices that remain, in order."""
    areas = (boxes[:, 2] - boxes[:, 0]).clip(0) * (boxes[:, 3] - boxes[:, 1]).clip(0)
    left = np.arange(len(boxes))
    selected: list[int] = []
    while len(left) and len(selected) < limit:
        first, left = left[0], left[1:]
        selected.append(int(first))
        width = np.minimum(boxes[first, 2], boxes[left, 2]) - np.maximum(boxes[first, 0], boxes[left, 0])
        height = np.minimum(boxes[first, 3], boxes[left, 3]) - np.maximum(boxes[first, 1], boxes[left, 1])
        shared = width.clip(0) * height.clip(0)
        union = areas[first] + areas[left] - shared
        left = left[shared <= iou_threshold * np.maximum(union, 1e-9)]
    return np.asarray(selected, np.int64)


def probabilities(logits: Floats) -> Floats:
    """Softmax over the last axis."""
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=-1, keepdims=True), np.float32)


def top(scores: Floats, count: int) -> NDArray[np.int64]:
    """Places of the `count` highest of scores [C], best first."""
    return np.argsort(-scores, kind="stable")[:count]
