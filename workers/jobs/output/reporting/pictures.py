"""Images of programs, read with care and written anew: what is shown is a PNG or JPEG of ours, whatever came. Pure."""

from __future__ import annotations

import io
import warnings
from dataclasses import dataclass

from PIL import Image

MAX_BYTES = 16 * 1024 * 1024  # bytes as they come
MAX_PIXELS = 24_000_000
MAX_SIDE_PX = 1024  # of what is kept
_FORMATS = ("PNG", "JPEG", "GIF")
_QUALITY = 88


@dataclass(frozen=True)
class Picture:
    data: bytes
    suffix: str
    width: int  # of what is kept
    height: int
    original: tuple[int, int]


def read(data: bytes) -> Picture | None:
    """An image as it is stored, at most 1,024 pixels a side; None for invalid or too large data."""
    if len(data) > MAX_BYTES:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with Image.open(io.BytesIO(data), formats=_FORMATS) as source:
                original = source.size
                if not 0 < original[0] * original[1] <= MAX_PIXELS:
                    return None
                jpeg = source.format == "JPEG"
                if jpeg:
                    source.draft("RGB", (MAX_SIDE_PX, MAX_SIDE_PX))
                image = _plain(source)
            image.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX))
            output = io.BytesIO()
            if jpeg:
                image.convert("RGB").save(output, "JPEG", quality=_QUALITY)
            else:
                image.save(output, "PNG", compress_level=4)
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError, MemoryError, EOFError):
        return None
    return Picture(output.getvalue(), "jpg" if jpeg else "png", *image.size, original)


def _plain(image: Image.Image) -> Image.Image:
    """Grey, colour, or colour with transparency, at 8 bits."""
    if image.mode in ("L", "RGB", "RGBA"):
        image.load()
        return image.copy()
    if image.mode.startswith("I"):  # 16 bits
        return image.convert("I").point(lambda value: value / 256).convert("L")
    return image.convert("RGBA" if "A" in image.mode or "transparency" in image.info else "RGB")
