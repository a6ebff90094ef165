"""Images, figures, sounds, videos, tables, histograms, texts and vectors of a script, shown beside its curves.

Files and the standard library only, like run.py; outside of a job each call prints what it would show. Nothing here
ends a training: what cannot be kept is one line of the log. A file is complete before the line that names it.

    image("samples", picture, step)                  # array, tensor, PIL image, or the path of a PNG or JPEG
    figure("confusion", fig, step)                   # of Matplotlib or Plotly
    audio("speech", samples, step, rate=16000)       # array or tensor, or the path of a WAV, MP3, OGG or FLAC
    video("rollout", frames, step, fps=10)           # frames, or the path of an MP4, WebM or GIF
    histogram("weights", values, step)
    table("worst", ["file", "loss"], rows, step)
    text("notes", "Markdown is shown as it is", step)
    embedding("last layer", vectors, labels, step)   # a row each; drawn in the plane of its two main directions
"""

from __future__ import annotations

import array
import functools
import io
import itertools
import json
import math
import os
import struct
import time
import wave
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from training.presets.run import current, log_line

FOLDER = "aip-media"  # below the outputs
MAX_BYTES = 16 * 1024 * 1024  # bytes of one file
MAX_PROCESS_BYTES, MAX_FILES = 256 * 1024 * 1024, 5000  # of one process; the platform keeps 256 MiB of a run
MAX_SIDE_PX = 1024  # pixels of an image; of a larger array every second or third one is kept
MAX_ROWS, MAX_COLUMNS = 1000, 50  # of a table
MAX_VECTORS, WIDEST = 5000, 4096
MAX_TEXT_BYTES = 16 * 1024
MAX_FRAMES = 1000  # of a video
SOUNDS = {b"RIFF": "wav", b"ID3": "mp3", b"\xff\xfb": "mp3", b"\xff\xf3": "mp3", b"OggS": "ogg", b"fLaC": "flac"}
VIDEOS = {b"GIF8": "gif", b"\x1aE\xdf\xa3": "webm"}  # an MP4 has "ftyp" behind four bytes
BUCKETS = 256  # of a histogram; the platform shows 30

_numbers = itertools.count()
_written = {"bytes": 0, "files": 0}


class _NotKept(Exception):
    """Something cannot be shown; the message says why."""


def _harmless(show: Callable[..., None]) -> Callable[..., None]:
    """Wrap a call so that it never ends the program: errors are written to the log."""

    @functools.wraps(show)
    def shown(name: str, *rest: Any, **named: Any) -> None:
        try:
            show(name, *rest, **named)
        except Exception as error:  # noqa: BLE001  whatever a library raises, the training goes on
            log_line(f"aip.{show.__name__} {name!r} was not kept: {error!s:.300}")

    return shown


@_harmless
def image(name: str, picture: Any, step: int = 0) -> None:
    """Show an image: uint8, or floats from 0 to 1, colours first or last; or the path of a PNG or JPEG."""
    if isinstance(picture, (str, os.PathLike)):
        data = Path(picture).read_bytes()
        if not data.startswith((b"\x89PNG", b"\xff\xd8\xff")):
            raise _NotKept("the file is no PNG or JPEG")
    elif hasattr(picture, "save") and hasattr(picture, "mode"):  # of PIL
        plain = picture if picture.mode in ("L", "RGB", "RGBA") else picture.convert("RGB")
        height, width = plain.size[1], plain.size[0]
        data = _png(plain.tobytes(), width, height, len(plain.mode) if plain.mode != "L" else 1)
    else:
        data = _png(*_pixels(picture))
    _show("image", name, step, {}, data, "jpg" if data.startswith(b"\xff") else "png")


@_harmless
def figure(name: str, fig: Any, step: int = 0) -> None:
    """Show a figure: of Matplotlib as an image, of Plotly as an interactive page (3 to 5 MB each)."""
    if hasattr(fig, "savefig"):
        picture = io.BytesIO()
        fig.savefig(picture, format="png", bbox_inches="tight")
        _show("image", name, step, {}, picture.getvalue(), "png")
    elif hasattr(fig, "to_html"):
        page = fig.to_html(full_html=True, include_plotlyjs=True)
        _show("figure", name, step, {}, page.encode("utf-8"), "html")
    else:
        raise _NotKept(f"{type(fig).__name__} is not a figure of Matplotlib or Plotly")


@_harmless
def audio(name: str, sound: Any, step: int = 0, *, rate: int = 16000) -> None:
    """Play a sound.

    Args:
        sound: samples from −1 to 1 (floats) or of 16 bits, shape (samples) or (samples, channels) with 1 or 2
            channels; or the path of a WAV, MP3, OGG or FLAC file.
        rate: samples a second, of an array.
    """
    if isinstance(sound, (str, os.PathLike)):
        data = Path(sound).read_bytes()
        suffix = next((suffix for magic, suffix in SOUNDS.items() if data.startswith(magic)), "")
        if not suffix:
            raise _NotKept("the file is not WAV, MP3, OGG or FLAC")
    else:
        data, suffix = _wave(sound, int(rate)), "wav"
    _show("audio", name, step, {}, data, suffix)


@_harmless
def video(name: str, frames: Any, step: int = 0, *, fps: float = 10) -> None:
    """Play a video.

    Args:
        frames: images as of `image` (an array of shape (frames, height, width, 3), say), at most 1,000; they become
            an animated GIF, which needs Pillow; or the path of an MP4, WebM or GIF file.
        fps: frames a second, of images.
    """
    if isinstance(frames, (str, os.PathLike)):
        data = Path(frames).read_bytes()
        suffix = (
            "mp4" if data[4:8] == b"ftyp" else next((s for magic, s in VIDEOS.items() if data.startswith(magic)), "")
        )
        if not suffix:
            raise _NotKept("the file is not MP4, WebM or GIF")
    else:
        data, suffix = _gif(frames, float(fps)), "gif"
    _show("video", name, step, {}, data, suffix)


@_harmless
def histogram(name: str, values: Any, step: int = 0) -> None:
    """Show how values are distributed; what is no finite number is left out."""
    low, high, counts = _counted(values)
    _show("histogram", name, step, {"low": low, "high": high, "counts": counts})


@_harmless
def text(name: str, words: str, step: int = 0) -> None:
    """Show a text of at most 16 KiB."""
    _show("text", name, step, {}, str(words)[: MAX_TEXT_BYTES + 1].encode("utf-8", "replace"), "txt")


@_harmless
def table(name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], step: int = 0) -> None:
    """Show a table of at most 1,000 rows and 50 columns."""
    cells = [[_cell(cell) for cell in list(row)[:MAX_COLUMNS]] for row in itertools.islice(rows, MAX_ROWS)]
    data = json.dumps({"columns": [str(column) for column in columns][:MAX_COLUMNS], "rows": cells})
    _show("table", name, step, {}, data.encode(), "json")


@_harmless
def embedding(name: str, vectors: Any, labels: Sequence[Any] = (), step: int = 0) -> None:
    """Show vectors as points, at most 5,000 of at most 4,096 numbers each, with a label each where there are some."""
    rows = [[float(value) for value in row] for row in _plain(vectors)[:MAX_VECTORS]]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not 0 < max(widths) <= WIDEST:
        raise _NotKept("vectors have equally many numbers, at most 4,096")
    head = json.dumps({"width": max(widths), "labels": [str(label)[:80] for label in list(labels)[: len(rows)]]})
    values = array.array("f", itertools.chain.from_iterable(rows))
    _show("vectors", name, step, {}, head.encode() + b"\n" + values.tobytes(), "f32", largest=4 * MAX_BYTES)


def _show(
    kind: str,
    name: str,
    step: int,
    facts: dict[str, Any],
    data: bytes = b"",
    suffix: str = "",
    largest: int = MAX_BYTES,
) -> None:
    """Write the file and then the line that names it, each in one act."""
    run = current()
    if run.metrics_file is None:
        log_line(f"{kind} {name!r} at step {step}: {len(data)} bytes")
        return
    if len(data) > largest:
        raise _NotKept(f"it has more than {largest // 1024**2} MiB")
    if _written["bytes"] + len(data) > MAX_PROCESS_BYTES or _written["files"] >= MAX_FILES:
        raise _NotKept("this run has shown as much as can be kept")
    folder = run.output_dir / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if data:
        file = f"{kind}-{os.getpid()}-{next(_numbers):06}.{suffix}"
        partial = folder / f".{file}.partial"
        partial.write_bytes(data)
        partial.replace(folder / file)
        facts = {**facts, "file": file}
    _written["bytes"] += len(data)
    _written["files"] += 1
    row = {"kind": kind, "name": str(name)[:120], "step": int(step), "time": round(time.time(), 3), **facts}
    with (folder / "media.jsonl").open("a") as lines:
        lines.write(json.dumps(row) + "\n")


def _plain(values: Any) -> Any:
    """A tensor as an array, anything else as it is."""
    values = values.detach() if hasattr(values, "detach") else values
    values = values.cpu() if hasattr(values, "cpu") else values
    values = values.float() if str(getattr(values, "dtype", "")) == "torch.bfloat16" else values
    return values.numpy() if hasattr(values, "numpy") else values


def _pixels(picture: Any) -> tuple[bytes, int, int, int]:
    """Bytes, width, height and colours of an array; of lists too, which takes longer."""
    pixels = _plain(picture)
    if not hasattr(pixels, "dtype"):
        import numpy  # noqa: PLC0415  only who gives lists needs it

        pixels = numpy.asarray(pixels)
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.ndim != 3:
        raise _NotKept(f"an image has 2 or 3 dimensions, this has {pixels.ndim}")
    if pixels.shape[2] not in (1, 3, 4) and pixels.shape[0] in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    height, width, colours = pixels.shape
    if colours not in (1, 3, 4) or not height or not width:
        raise _NotKept("an image has 1, 3 or 4 colours")
    every = -(-max(height, width) // MAX_SIDE_PX)
    pixels = pixels[::every, ::every]
    if pixels.dtype.kind == "f":
        pixels = (pixels.clip(0, 1) * 255).round()
        pixels[pixels != pixels] = 0  # what is no number differs from itself
    elif pixels.dtype.kind == "b":
        pixels = pixels.astype("uint8") * 255
    pixels = pixels.clip(0, 255).astype("uint8")
    return pixels.tobytes(), pixels.shape[1], pixels.shape[0], colours


def _png(pixels: bytes, width: int, height: int, colours: int) -> bytes:
    """A PNG of 8-bit pixels."""
    stride = width * colours
    lines = b"".join(b"\0" + pixels[row * stride : (row + 1) * stride] for row in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[colours], 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 1)), (b"IEND", b""))
    made = (struct.pack(">I", len(d)) + t + d + struct.pack(">I", zlib.crc32(t + d)) for t, d in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(made)


def _wave(sound: Any, rate: int) -> bytes:
    """A WAV file of samples."""
    samples = _plain(sound)
    if not hasattr(samples, "dtype"):
        import numpy  # noqa: PLC0415  only who gives lists needs it

        samples = numpy.asarray(samples)
    if samples.ndim == 2 and samples.shape[0] in (1, 2) and samples.shape[1] > 2:
        samples = samples.T
    if samples.ndim not in (1, 2) or not samples.size or (samples.ndim == 2 and samples.shape[1] not in (1, 2)):
        raise _NotKept("a sound has the shape (samples) or (samples, 1 or 2 channels)")
    if samples.dtype.kind == "f":
        samples = samples.clip(-1, 1)
        samples[samples != samples] = 0
        samples = (samples * 32767).round()
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(samples.shape[1] if samples.ndim == 2 else 1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(samples.clip(-32768, 32767).astype("<i2").tobytes())
    return file.getvalue()


def _gif(frames: Any, fps: float) -> bytes:
    """An animated GIF of images."""
    try:
        from PIL import Image  # noqa: PLC0415  only frames need it
    except ImportError:
        raise _NotKept("frames need Pillow; write a file and give its path") from None
    pictures = []
    for frame in itertools.islice(_plain(frames), MAX_FRAMES):
        pixels, width, height, colours = _pixels(frame)
        mode = {1: "L", 3: "RGB", 4: "RGBA"}[colours]
        pictures.append(Image.frombytes(mode, (width, height), pixels).convert("RGB"))
    if not pictures:
        raise _NotKept("there are no frames")
    file = io.BytesIO()
    duration_ms = max(20, round(1000 / max(fps, 0.1)))
    pictures[0].save(file, "GIF", save_all=True, append_images=pictures[1:], duration=duration_ms, loop=0)
    return file.getvalue()


def _counted(values: Any) -> tuple[float, float, list[int]]:
    """Lowest and highest value, and how many lie in each bucket between them."""
    values = _plain(values)
    if hasattr(values, "dtype"):
        import numpy  # noqa: PLC0415  whoever has an array has it

        flat = values.reshape(-1).astype("float64")
        flat = flat[numpy.isfinite(flat)]
        if not len(flat):
            raise _NotKept("none of its values is a finite number")
        low, high = float(flat.min()), float(flat.max())
        return low, high, numpy.histogram(flat, BUCKETS, (low, high))[0].tolist() if low < high else [len(flat)]
    finite = [number for number in map(float, values) if math.isfinite(number)]
    if not finite:
        raise _NotKept("none of its values is a finite number")
    low, high = min(finite), max(finite)
    if low == high:
        return low, high, [len(finite)]
    counts = [0] * BUCKETS
    for number in finite:
        counts[min(BUCKETS - 1, int((number - low) / (high - low) * BUCKETS))] += 1
    return low, high, counts


def _cell(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)[:300]
