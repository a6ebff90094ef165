"""How images come to the detector: input size, shape, and what part of an image is learned from at once.

Chosen from the data and the time: so large that most small objects keep enough pixels, larger where there is time for
it; upright and lying pictures in one grey frame instead of squeezed; windows around objects where whole images would
cost too much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from . import checkpoints, data, image_cache, tiles
from .run import Refused, Run

LONG_SIDE, LONGEST_SIDE = 320, 1024  # of the input, in pixels, where nobody chose a size
SMALL_OBJECT = 16.0  # nine of ten objects are at least so large at the chosen size, where images have the pixels
LOST_OBJECT = 8.0  # what is smaller than a cell of the finest map is hardly found
SQUEEZED = 1.15  # shapes that differ by less are stretched to one
WINDOW_PAYS = 0.6  # a window is no use if it is more than this share of the image
LARGE_OBJECT = 96.0  # where a quarter of the objects is larger, a coarser map helps
EPOCHS = 30  # more than so many pay less than larger images do
MIN_IMAGES = 180  # fewer count as so many: a model needs steps, however few images they are made of
PX_PER_CORE_S = 1_000_000  # the detector learns from in a second of one CPU core; only the order of magnitude matters


@dataclass(frozen=True)
class View:
    """Sizes are pixels. Learning sees `window`, the finished model all of width × height, or tiles."""

    width: int
    height: int
    resize: str  # stretch, letterbox, or cut where there are tiles
    window: tuple[int, int]  # width, height
    strides: tuple[int, ...]
    objects: int
    lost: int  # objects smaller than LOST_OBJECT
    tile: int = 0  # side of the tiles that all of an image is looked at in, at its own size; 0: it is seen as a whole

    @classmethod
    def from_dict(cls, described: Mapping[str, Any]) -> View:
        """Restore a view from the JSON of its `dataclasses.asdict`."""
        return cls(**{**described, "window": tuple(described["window"]), "strides": tuple(described["strides"])})

    def suits(self, params: Mapping[str, Any]) -> bool:
        """Return whether the parameters request nothing else."""
        if self.tile != sixteens(params.get("tile", 0)):
            return False
        if self.tile:
            return params["strides"] in ("auto", _written(self.strides))
        own = {"width": self.width, "height": self.height, "resize": self.resize, "strides": _written(self.strides)}
        return all(params[name] in (0, "auto", value) for name, value in own.items())

    @property
    def input_size(self) -> tuple[int, int]:
        """Width and height of the finished model's input."""
        return (self.tile, self.tile) if self.tile else (self.width, self.height)

    @property
    def windowed(self) -> bool:
        return self.window != (self.width, self.height)

    def to_input(self, image: data.Image, boxes: np.ndarray) -> np.ndarray:
        """Boxes [K, 4] of an image's own pixels in input pixels; those of tiles are the image's."""
        if self.tile:
            return boxes
        if self.resize == "letterbox":
            scale, left, top = image_cache.letterbox(image.width, image.height, self.width, self.height)
            return np.asarray(boxes * scale + np.array([left, top, left, top], np.float32), np.float32)
        across, down = self.width / image.width, self.height / image.height
        return np.asarray(boxes * np.array([across, down, across, down], np.float32), np.float32)

    def to_image(self, image: data.Image, boxes: np.ndarray) -> np.ndarray:
        """Boxes [K, 4] of input pixels in an image's own pixels, cut at its edge."""
        if self.resize == "letterbox":
            scale, left, top = image_cache.letterbox(image.width, image.height, self.width, self.height)
            boxes = (boxes - np.array([left, top, left, top])) / scale
        else:
            across, down = image.width / self.width, image.height / self.height
            boxes = boxes * np.array([across, down, across, down])
        return np.asarray(boxes.clip(0, [image.width, image.height] * 2))

    def described(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """How images become the model's input, as model.json says it."""
        if self.tile:
            return {"resize": "letterbox", "tile": {"overlap": params["tile_overlap"]}}
        return {"resize": self.resize}

    def lines(self) -> Iterator[str]:
        """What people should know of it, in the job's log."""
        if self.resize == "letterbox":
            yield f"images of several shapes are put into {self.width}×{self.height} without squeezing them"
        if self.tile:
            yield f"learning from tiles of {self.tile}×{self.tile} at the images' own size"
        elif self.windowed:
            yield f"learning from windows of {self.window[0]}×{self.window[1]} around objects"
        if self.lost:
            few = f"{self.lost} of {self.objects} objects are smaller than {LOST_OBJECT:g} px"
            if self.tile:
                yield f"{few} and will hardly be found: the images have no more pixels of them"
            else:
                yield f"{few} at {self.width}×{self.height} and will hardly be found: choose a larger width"


def for_training(
    run: Run,
    version: data.Version,
    learn: Sequence[int],
    boxes: Sequence[np.ndarray],
    params: Mapping[str, Any],
    *,
    cores: float,
    px_per_core_s: float = PX_PER_CORE_S,
) -> View:
    """Return the view of the images: that of the training being resumed, else one chosen by data and time.

    Checkpoints that do not say it are of versions that went by the data alone.

    Args:
        learn, boxes: rows to learn from, and the boxes of each.
        px_per_core_s: pixels learned from in a second of one core.
    """
    sizes = [(version.images[row].width, version.images[row].height) for row in learn]
    checkpoint = checkpoints.newest(run.resume_from, run.checkpoint_dir)
    if checkpoint:
        described = (checkpoints.meta(checkpoint) or {}).get("view")
        return choose(sizes, boxes, params, before=View.from_dict(described) if described else None)
    return choose(sizes, boxes, params, cores=cores, px_per_core_s=px_per_core_s)


def choose(
    images: Sequence[tuple[int, int]],
    boxes: Sequence[np.ndarray],
    params: Mapping[str, Any],
    *,
    cores: float = 0.0,
    px_per_core_s: float = PX_PER_CORE_S,
    before: View | None = None,
) -> View:
    """Choose a view from the images to learn from: their sizes (width, height) and boxes [K, 4] xyxy, in pixels.

    Args:
        params: `width`, `height` (0: chosen here, by the other one if that is given), `resize` and `strides` (or auto).
        cores: that learn during `budget_minutes`; where the time allows it, images are larger than objects demand.
        before: of the training that is gone on with. It stays unless `params` ask for something else, and its maps
            stay wherever they may: its weights belong to them.
    """
    if before and before.suits(params):
        return before
    if params.get("tile"):
        return _tiled(boxes, params, before)
    shapes = [width / height for width, height in images]
    resize = params["resize"]
    if resize == "auto":
        resize = "letterbox" if max(shapes) > SQUEEZED**2 * min(shapes) else "stretch"
    shape = _common_shape(images) if resize == "letterbox" else median(shapes)
    requested_width, requested_height = params["width"], params["height"]
    is_requested = bool(requested_width or requested_height)
    if is_requested:
        width, height = (
            sixteens(requested_width or requested_height * shape),
            sixteens(requested_height or requested_width / shape),
        )
    else:
        width, height = _size(_long_side(images, boxes), shape)
    sides = _scaled_sides(images, boxes, width, height, resize)
    window = (width, height) if is_requested else _window(width, height, sides)
    if not is_requested and window == (width, height):
        seconds = 60 * params["budget_minutes"] * cores / max(len(images), MIN_IMAGES)
        affordable = _affordable_side(images, shape, seconds * px_per_core_s)
        window = width, height = _size(max(_long_side(images, boxes), affordable), shape)
        sides = _scaled_sides(images, boxes, width, height, resize)
    return View(width, height, resize, window, _strides(sides, params, before), *_counted(sides))


def _tiled(boxes: Sequence[np.ndarray], params: Mapping[str, Any], before: View | None) -> View:
    """Tiles at the images' own size: learning sees a window of a region around a tile.

    Raises:
        Refused: a size of the input was given as well.
    """
    if params["width"] or params["height"]:
        raise Refused("tile says how large the input is: leave out width and height.")
    tile = sixteens(params["tile"])
    region = round(tiles.REACH * tile)
    sides = np.concatenate([np.zeros((0, 2)), *(own[:, 2:] - own[:, :2] for own in boxes)])
    strides = _strides(sides, params, before)
    return View(region, region, "cut", (tile, tile), strides, *_counted(sides), tile=tile)


def _strides(sides: np.ndarray, params: Mapping[str, Any], before: View | None) -> tuple[int, ...]:
    """Return strides that suit objects of these sides [M, 2], in input pixels, unless chosen or already learned."""
    if params["strides"] != "auto":
        return tuple(int(stride) for stride in params["strides"].split(","))
    if before:
        return before.strides
    longest = float(np.quantile(sides.max(1), 0.75)) if len(sides) else 0.0
    return (8, 16, 32) if longest > LARGE_OBJECT else (8, 16)


def _counted(sides: np.ndarray) -> tuple[int, int]:
    """How many objects there are, and how many of them are lost."""
    return len(sides), int((np.sqrt(sides.prod(1)) < LOST_OBJECT).sum())


def _common_shape(images: Sequence[tuple[int, int]]) -> float:
    """Width to height of the frame all images fit into when their long sides are made equal."""
    across = max(width / max(width, height) for width, height in images)
    down = max(height / max(width, height) for width, height in images)
    return across / down


def _long_side(images: Sequence[tuple[int, int]], boxes: Sequence[np.ndarray]) -> float:
    """The long side at which a small object has enough pixels; never more than images usually have."""
    usual = median(max(size) for size in images)
    parts = [
        np.sqrt((own[:, 2:] - own[:, :2]).prod(1)) / max(size)
        for size, own in zip(images, boxes, strict=True)
        if len(own)
    ]
    small = float(np.quantile(np.concatenate(parts), 0.1)) if parts else 1.0
    return min(max(LONG_SIDE, SMALL_OBJECT / max(small, 1e-6)), LONGEST_SIDE, usual)


def _affordable_side(images: Sequence[tuple[int, int]], shape: float, learned_px: float) -> float:
    """The long side of whole images that can each be learned from EPOCHS times.

    Args:
        learned_px: pixels of each image that can be learned from in all.
    """
    usual = median(max(size) for size in images)
    return min(math.sqrt(learned_px / EPOCHS * max(shape, 1 / shape)), usual, LONGEST_SIDE)


def _size(side: float, shape: float) -> tuple[int, int]:
    """Width and height of a frame of this shape and long side."""
    return (sixteens(side), sixteens(side / shape)) if shape >= 1 else (sixteens(side * shape), sixteens(side))


def _scaled_sides(
    images: Sequence[tuple[int, int]], boxes: Sequence[np.ndarray], width: int, height: int, resize: str
) -> np.ndarray:
    """Width and height of every object in input pixels [M, 2]."""
    sides = [np.zeros((0, 2))]
    for size, own in zip(images, boxes, strict=True):
        across, down = width / size[0], height / size[1]
        if resize == "letterbox":
            across = down = min(across, down)
        sides.append((own[:, 2:] - own[:, :2]) * np.array([across, down]))
    return np.concatenate(sides)


def _window(width: int, height: int, sides: np.ndarray) -> tuple[int, int]:
    """At least as large as the smallest input, and twice as large as nearly all objects; the whole if that is most."""
    large = float(np.quantile(sides.max(1), 0.95)) if len(sides) else 0.0
    side = sixteens(max(LONG_SIDE, 2 * large))
    across, down = min(side, width), min(side, height)
    return (across, down) if across * down <= WINDOW_PAYS * width * height else (width, height)


def sixteens(pixels: float) -> int:
    """The side of an input near so many pixels; 0 stays."""
    return max(32, round(pixels / 16) * 16) if pixels else 0


def _written(strides: Sequence[int]) -> str:
    return ",".join(str(stride) for stride in strides)
