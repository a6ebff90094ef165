"""Check untrusted images: type by content, upright size, whole or broken. Make thumbnails."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Sequence
from typing import BinaryIO, NamedTuple, cast

from PIL import Image, ImageOps, UnidentifiedImageError

from aiplatform import env
from aiplatform.lib.wording import Worded, message

#: What is taken, by content; the endings of names mean nothing.
_READERS = ["JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF"]  # a phone's MPO is opened by the JPEG reader
#: Taken, but kept as a PNG of their first frame: browsers show no TIFF, and trainings learn from one frame.
STILL_KINDS = {"GIF", "TIFF", "HEIF"}
try:
    import pillow_heif
except ImportError:
    pass
else:
    pillow_heif.register_heif_opener()
    _READERS.append("HEIF")
THUMBNAIL_PX = 256
SMALL_BYTES = 1 << 20  # read at once; larger files are read in pieces
ORIENTATION = 0x0112

Image.MAX_IMAGE_PIXELS = env.MAX_IMAGE_PIXELS
warnings.simplefilter("error", Image.DecompressionBombWarning)


class BadImage(Worded):
    """The file is no image we take."""


class Inspected(NamedTuple):
    """Type, hash and size of an image.

    Args:
        width, height: of the upright image, EXIF orientation applied.
        kind: a Pillow format, by content: "JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "HEIF".
        rotated: the file stores it lying or mirrored and says so.
        orientation: EXIF orientation 1–8 that says so.
        moving: it has more than one frame or page.
    """

    width: int
    height: int
    kind: str
    sha256: str
    size_bytes: int
    rotated: bool
    moving: bool = False
    orientation: int = 1


def inspect(file: BinaryIO) -> Inspected:
    """Read the whole file: hash, type, upright size; every pixel must decode.

    Raises:
        BadImage: empty, cut off, of a foreign type or with too many pixels.
    """
    file, size, digest = _hashed(file)
    if size == 0:
        raise BadImage(message("report.file_empty"))
    try:
        with Image.open(file, formats=_READERS) as image:
            width, height = image.size
            kind = "JPEG" if image.format == "MPO" else str(image.format)
            turned = _orientation(image)
            moving = image.format != "MPO" and bool(getattr(image, "is_animated", False))
            if kind == "JPEG":
                image.draft(None, (1, 1))  # reads every byte, computes an eighth
            image.load()
    except UnidentifiedImageError:
        raise BadImage(message("report.not_an_image")) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise BadImage(message("report.too_many_pixels", most=env.MAX_IMAGE_PIXELS)) from None
    except Exception as exc:  # noqa: BLE001 - decoders raise whatever they meet in a broken file
        raise _damaged(exc) from None
    if width < 1 or height < 1:
        raise BadImage(message("report.no_pixels"))
    if turned >= 5:
        width, height = height, width
    return Inspected(width, height, kind, digest, size, turned != 1, moving, turned)


def _damaged(exc: Exception) -> BadImage:
    return BadImage(message("report.image_damaged", error=str(exc)[:100] or type(exc).__name__))


def _hashed(file: BinaryIO) -> tuple[BinaryIO, int, str]:
    """Return the file at its beginning (a small one in memory), its bytes and their SHA-256."""
    data = file.read(SMALL_BYTES)
    if len(data) < SMALL_BYTES:
        return io.BytesIO(data), len(data), hashlib.sha256(data).hexdigest()
    file.seek(0)
    digest = hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]  # any file that reads bytes will do
    size = file.tell()
    file.seek(0)
    return file, size, digest


def _orientation(image: Image.Image) -> int:
    """EXIF orientation 1–8; anything else in the field counts as upright."""
    try:
        value = image.getexif().get(ORIENTATION, 1)
    except Exception:  # noqa: BLE001 - a broken EXIF block does not make a broken image
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def still(file: BinaryIO) -> bytes:
    """The first frame, upright, as PNG.

    Raises:
        BadImage: it does not decode, or holds numbers that no PNG holds.
    """
    try:
        with Image.open(file, formats=_READERS) as opened:
            image: Image.Image = ImageOps.exif_transpose(opened) if _orientation(opened) != 1 else opened
            if image.mode == "F":
                raise BadImage(message("report.fractions"))
            if image.mode.startswith("I"):
                image = _sixteen_bits(image)
            elif image.mode == "P":
                image = image.convert("RGBA" if "transparency" in image.info else "RGB")
            elif image.mode not in {"1", "L", "LA", "I;16", "RGB", "RGBA"}:
                image = image.convert("RGB")
            out = io.BytesIO()
            image.save(out, "PNG", compress_level=3)
            return out.getvalue()
    except BadImage:
        raise
    except Exception as exc:  # noqa: BLE001 - decoders raise whatever they meet in a broken file
        raise _damaged(exc) from None


def _sixteen_bits(image: Image.Image) -> Image.Image:
    """Whole grey values as a PNG can hold them.

    Raises:
        BadImage: some are negative or need more than 16 bits.
    """
    if image.mode != "I":
        image = image.convert("I")
    low, high = cast(tuple[int, int], image.getextrema())
    if low < 0 or high > 0xFFFF:
        raise BadImage(message("report.too_deep", low=low, high=high))
    return image.convert("I;16")


def is_still_kind(head: bytes) -> bool:
    """Whether the first 16 bytes are those of an image that is kept as PNG."""
    return head[:6] in {b"GIF87a", b"GIF89a"} or head[:4] in {b"II*\0", b"MM\0*"} or head[4:8] == b"ftyp"


def content_type(head: bytes) -> str | None:
    """Content type by the first 16 bytes; None for what is no image we take."""
    if head[:3] == b"\xff\xd8\xff":
        return "image/jpeg"
    if head[:8] == b"\x89PNG\r\n\x1a\n":
        return "image/png"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[:2] == b"BM":
        return "image/bmp"
    return None


def thumbnail(file: BinaryIO) -> bytes:
    """An upright WebP of at most 256 px a side.

    Raises:
        BadImage: the file does not decode (any more).
    """
    try:
        with Image.open(file, formats=_READERS) as opened:
            if opened.format in {"JPEG", "MPO"}:
                opened.draft("RGB", (THUMBNAIL_PX * 2, THUMBNAIL_PX * 2))
            image = _upright_color(opened)
            image.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX))
            out = io.BytesIO()
            image.save(out, "WEBP", quality=80, method=2)
            return out.getvalue()
    except Exception as exc:  # noqa: BLE001 - decoders raise whatever they meet in a broken file
        raise _damaged(exc) from None


def _upright_color(opened: Image.Image) -> Image.Image:
    """Return the image as it is shown, as RGB, or RGBA where it has transparent parts."""
    image: Image.Image = ImageOps.exif_transpose(opened) if _orientation(opened) != 1 else opened
    if image.mode.startswith("I;16"):  # 16 bit grey: the upper byte is what an eye sees
        image = image.point(lambda value: value / 256).convert("L")
    return image.convert("RGBA" if "A" in image.mode or "transparency" in image.info else "RGB")


def sheet(files: Sequence[bytes | None], width: int, height: int) -> bytes:
    """A WebP of small images one below the other, each cropped to fill its tile.

    Args:
        files: images; the tile of None, or of what does not decode, stays transparent.
        width, height: of a tile, pixels.
    """
    canvas = Image.new("RGBA", (width, height * len(files)))
    for number, data in enumerate(files):
        if data is None:
            continue
        try:
            with Image.open(io.BytesIO(data), formats=_READERS) as opened:
                tile = ImageOps.fit(_upright_color(opened), (width, height), Image.Resampling.BILINEAR)
        except Exception:  # noqa: BLE001, S112 - decoders raise whatever they meet in a broken file
            continue
        canvas.paste(tile, (0, number * height))
    out = io.BytesIO()
    canvas.save(out, "WEBP", quality=80, method=2)
    return out.getvalue()
