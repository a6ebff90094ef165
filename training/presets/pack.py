"""Pictures decoded once: uint8 shards next to each other on disk, mapped into memory when needed.

Decoding a JPEG costs milliseconds, reading its row here a tenth of that. A pack belongs to one dataset version,
one size and one packer version; each shard appears by rename, so a killed packer costs one shard, and a lock
lets a second job wait for the first instead of working twice.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image as Picture
from PIL import ImageOps

from . import data
from .run import Refused, say

PACKER = 1  # raise it when the pixels that come out would differ
SHARD_ROWS = 1024
GREY_FILL = 114  # around a letterboxed picture


class Pack:
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
        for place, row in enumerate(wanted):
            out[place] = self._shards[row // SHARD_ROWS][row % SHARD_ROWS]
        return out


def open_or_make(version: data.Version, cache: Path, *, width: int, height: int, channels: int, resize: str) -> Pack:
    """Return the pack of this version and size, made first where it is missing.

    Raises:
        Refused: an image cannot be read.
    """
    content = hashlib.sha256("\n".join(f"{i.path} {i.sha256}" for i in version.images).encode()).hexdigest()[:16]
    folder = cache / f"pack{PACKER}-{content}-{width}x{height}x{channels}-{resize}"
    rows = len(version.images)
    if not (folder / "index.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # let go by the kernel, also when we are killed
            if not (folder / "index.json").exists():
                _make(version, folder, width, height, channels, resize)
    return Pack(folder, rows, height, width, channels)


def _make(version: data.Version, folder: Path, width: int, height: int, channels: int, resize: str) -> None:
    rows = len(version.images)
    say(f"packing {rows} images at {width}×{height}")
    threads = max(1, int(os.environ.get("OMP_NUM_THREADS") or os.cpu_count() or 1))

    def one(row: int) -> np.ndarray:
        return pixels(version.folder / "images" / version.images[row].path, width, height, channels, resize)

    with ThreadPoolExecutor(threads) as pool:
        for number, (start, stop) in enumerate(_spans(rows)):
            shard = _shard(folder, number)
            if shard.exists():
                continue
            with shard.with_suffix(".tmp").open("wb") as file:
                for picture in pool.map(one, range(start, stop)):
                    file.write(picture.tobytes())
                file.flush()
                os.fsync(file.fileno())
            shard.with_suffix(".tmp").rename(shard)
    index = {"packer": PACKER, "rows": rows, "width": width, "height": height, "channels": channels}
    (folder / "index.tmp").write_text(json.dumps(index))
    (folder / "index.tmp").rename(folder / "index.json")


def pixels(path: Path, width: int, height: int, channels: int, resize: str) -> np.ndarray:
    """Decode one image upright, RGB or grey, at the wanted size: uint8 [H, W, C].

    Raises:
        Refused: the file is no image Pillow can read.
    """
    try:
        with Picture.open(path) as opened:
            picture = ImageOps.exif_transpose(opened).convert("RGB" if channels == 3 else "L")
    except (OSError, ValueError, Picture.DecompressionBombError) as error:
        raise Refused(f"{path.name} cannot be read as an image: {error}.") from error
    if resize == "letterbox":
        scale, left, top = letterbox(picture.width, picture.height, width, height)
        inner = picture.resize(
            (round(picture.width * scale), round(picture.height * scale)), Picture.Resampling.BILINEAR
        )
        picture = Picture.new(picture.mode, (width, height), (GREY_FILL,) * channels if channels == 3 else GREY_FILL)
        picture.paste(inner, (left, top))
    elif picture.size != (width, height):
        picture = picture.resize((width, height), Picture.Resampling.BILINEAR)
    return np.asarray(picture, np.uint8).reshape(height, width, channels)


def letterbox(w: int, h: int, width: int, height: int) -> tuple[float, int, int]:
    """Scale and left, top offsets that centre a w×h picture inside width×height."""
    scale = min(width / w, height / h)
    return scale, (width - round(w * scale)) // 2, (height - round(h * scale)) // 2


def channels_of(version: data.Version) -> int:
    """1 if the first pictures are all grey, else 3."""
    modes = set()
    for image in version.images[:16]:
        try:
            with Picture.open(version.folder / "images" / image.path) as picture:
                modes.add(picture.mode)
        except OSError as error:
            raise Refused(f"{image.path} cannot be read as an image: {error}.") from error
    return 1 if modes <= {"L", "1"} else 3


def _spans(rows: int) -> list[tuple[int, int]]:
    return [(start, min(start + SHARD_ROWS, rows)) for start in range(0, rows, SHARD_ROWS)]


def _shard(folder: Path, number: int) -> Path:
    return folder / f"{number:05d}.bin"
