"""Image cache: each image of a version, or its mask, decoded once into uint8 shards, which are mapped into memory.

Decoding a JPEG costs milliseconds, reading its row here a tenth of that. A cache belongs to one dataset version,
one size and one format version; each shard appears by rename, so a killed writer costs one shard, and a lock
lets a second job wait for the first instead of working twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from PIL import Image, ImageOps

from . import data, phases
from .run import Refused, log_line

FORMAT_VERSION = 1  # raise it when the pixels that come out would differ
SHARD_ROWS = 1024
GREY_FILL = 114  # around a letterboxed picture
Made = TypeVar("Made")


class ImageCache:
    """Rows of uint8 pixels [H, W, C], in the order of the dataset's manifest."""

    def __init__(self, folder: Path, rows: int, height: int, width: int, channels: int) -> None:
        self.shape = (rows, height, width, channels)
        self._shards = [
            np.memmap(_shard(folder, number), np.uint8, "r", shape=(stop - start, height, width, channels))
            for number, (start, stop) in enumerate(_spans(rows))
        ]

    def rows(self, wanted: list[int]) -> np.ndarray:
        """Copy `wanted` rows into one array [N, H, W, C]."""
        out = np.empty((len(wanted), *self.shape[1:]), np.uint8)
        for index, row in enumerate(wanted):
            out[index] = self._shards[row // SHARD_ROWS][row % SHARD_ROWS]
        return out


def open_or_make(
    version: data.Version, cache: Path, *, width: int, height: int, channels: int, resize: str
) -> ImageCache:
    """Return the image cache of this version and size, made first where it is missing.

    Raises:
        Refused: an image cannot be read.
    """
    content = hashlib.sha256("\n".join(f"{i.path} {i.sha256}" for i in version.images).encode()).hexdigest()[:16]
    name = f"images{FORMAT_VERSION}-{content}-{width}x{height}x{channels}-{resize}"

    def decode_row(row: int) -> np.ndarray:
        return pixels(version.folder / "images" / version.images[row].path, width, height, channels, resize)

    return open_rows(cache, name, (len(version.images), height, width, channels), decode_row)


def open_rows(
    cache: Path, name: str, shape: tuple[int, int, int, int], decode_row: Callable[[int], np.ndarray]
) -> ImageCache:
    """Return the rows cached under `name`; missing ones are created by `decode_row`.

    Args:
        name: of a folder in `cache`; says all that the rows depend on.
        shape: rows, height, width, channels.
    """
    folder = cache / name
    if not (folder / "index.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # let go by the kernel, also when we are killed
            if not (folder / "index.json").exists():
                _make(folder, shape, decode_row)
    return ImageCache(folder, *shape)


def _make(folder: Path, shape: tuple[int, int, int, int], decode_row: Callable[[int], np.ndarray]) -> None:
    rows, height, width, channels = shape
    what = folder.name.partition("-")[0].rstrip("0123456789")
    log_line(f"caching {rows} {what} at {width}×{height}")
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))
    phase = phases.MASKS if what.startswith(("mask", "object")) else phases.PACKING
    with ThreadPoolExecutor(threads) as pool, phases.preparing(phase, rows):
        for number, (start, stop) in enumerate(_spans(rows)):
            shard = _shard(folder, number)
            if shard.exists():
                phases.advance(stop - start)
                continue
            with shard.with_suffix(".tmp").open("wb") as file:
                for decoded in pool.map(decode_row, range(start, stop)):
                    file.write(decoded.tobytes())
                    phases.advance()
                file.flush()
                os.fsync(file.fileno())
            shard.with_suffix(".tmp").rename(shard)
    index = {"format": FORMAT_VERSION, "rows": rows, "width": width, "height": height, "channels": channels}
    (folder / "index.tmp").write_text(json.dumps(index))
    (folder / "index.tmp").rename(folder / "index.json")


def pixels(path: Path, width: int, height: int, channels: int, resize: str) -> np.ndarray:
    """Decode one image upright, RGB or grey, at the wanted size: uint8 [H, W, C].

    Raises:
        Refused: the file is no image Pillow can read.
    """
    image = opened(path, "RGB" if channels == 3 else "L")
    if resize == "letterbox":
        _, left, top = letterbox(image.width, image.height, width, height)
        inner = image.resize(fitted(image.width, image.height, width, height), Image.Resampling.BILINEAR)
        image = Image.new(image.mode, (width, height), (GREY_FILL,) * channels if channels == 3 else GREY_FILL)
        image.paste(inner, (left, top))
    elif resize == "cut":  # the middle, at its own size
        left, top = (image.width - width) // 2, (image.height - height) // 2
        ground = Image.new(image.mode, (width, height), (GREY_FILL,) * channels if channels == 3 else GREY_FILL)
        ground.paste(image, (-left, -top))
        image = ground
    elif image.size != (width, height):
        image = image.resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image, np.uint8).reshape(height, width, channels)


def opened(path: Path, mode: str) -> Image.Image:
    """Decode one image upright in this mode.

    Raises:
        Refused: the file is no image Pillow can read.
    """
    try:
        with Image.open(path) as file:
            return ImageOps.exif_transpose(file).convert(mode)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise Refused(f"{path.name} cannot be read as an image: {error}.") from error


class Shared(Generic[Made]):
    """What is made of a row of the manifest for everything that is cut from it: once, whichever thread asks first.

    Args:
        most: rows that are kept at a time; those asked for last.
    """

    def __init__(self, make: Callable[[int], Made], capacity: int = 4) -> None:
        self._make, self._most = make, capacity
        self._made: dict[int, Future[Made]] = {}
        self._lock = threading.Lock()

    def __call__(self, row: int) -> Made:
        with self._lock:
            existing = self._made.pop(row, None)
            future = self._made[row] = existing or Future()
            while len(self._made) > self._most:
                del self._made[next(iter(self._made))]
        if existing is None:
            try:
                future.set_result(self._make(row))
            except BaseException as error:
                future.set_exception(error)
                raise
        return future.result()


def letterbox(w: int, h: int, width: int, height: int) -> tuple[float, int, int]:
    """Scale and left, top offsets that centre a w×h picture inside width×height."""
    inner = fitted(w, h, width, height)
    return min(width / w, height / h), (width - inner[0]) // 2, (height - inner[1]) // 2


def fitted(w: int, h: int, width: int, height: int) -> tuple[int, int]:
    """Size at which a w×h picture fits into width×height: a pixel at least, however narrow it is."""
    scale = min(width / w, height / h)
    return max(1, round(w * scale)), max(1, round(h * scale))


def channels_of(version: data.Version) -> int:
    """1 if the first pictures are all grey, else 3."""
    modes = set()
    for image in version.images[:16]:
        try:
            with Image.open(version.folder / "images" / image.path) as opened:
                modes.add(opened.mode)
        except OSError as error:
            raise Refused(f"{image.path} cannot be read as an image: {error}.") from error
    return 1 if modes <= {"L", "1"} else 3


def _spans(rows: int) -> list[tuple[int, int]]:
    return [(start, min(start + SHARD_ROWS, rows)) for start in range(0, rows, SHARD_ROWS)]


def _shard(folder: Path, number: int) -> Path:
    return folder / f"{number:05d}.bin"
