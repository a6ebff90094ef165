"""Folders read in one go, and what was said about them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datasets.formats import detect
from datasets.formats.listing import Listing
from datasets.formats.neutral import Parsed
from datasets.formats.size_checks import fit_to_image
from tests.datasets.pictures import picture


def read_folder(root: Path) -> Parsed:
    listing = Listing.scan(root)
    parsed = detect.read(listing, detect.detect(listing))
    files = detect.files_of(listing, parsed)
    assert files["total"] == files["images"] + files["labels"] + files["left_out"] + files["litter"]
    told = len(parsed.problems.noted) + sum(problem.code != "" for problem in parsed.problems.listed)
    assert told >= files["left_out"]  # nothing is left out without a word
    return parsed


def codes(parsed: Any) -> dict[str, int]:
    return dict(parsed.problems.counts)


def notes(parsed: Any) -> dict[str, int]:
    return dict(parsed.problems.notes)


def said(parsed: Parsed) -> dict[str, tuple[bool, int]]:
    """Path → whether somebody looked at the image, and how many shapes it has."""
    return {image.path: (image.annotated, len(image.shapes)) for image in parsed.images}


def fitted(parsed: Parsed, width: int, height: int) -> Parsed:
    for image in parsed.images:
        fit_to_image(image, width, height, parsed.problems)
    return parsed


def mask_png(pixels: np.ndarray, palette: list[int] | None = None) -> bytes:
    out = io.BytesIO()
    image = Image.fromarray(pixels)
    if palette:
        image = image.convert("P") if image.mode != "L" else image
        image.putpalette(palette)
    image.save(out, "PNG")
    return out.getvalue()


def two_objects(dtype: Any = np.uint8) -> np.ndarray:
    pixels = np.zeros((30, 40), dtype)
    pixels[2:12, 2:12] = 1
    pixels[5:8, 5:8] = 0
    pixels[15:25, 20:30] = 2
    return pixels


LINE = "0 0.5 0.5 0.25 0.5\n"
RNG = np.random.default_rng(5)


def photo(width: int = 40, height: int = 30) -> bytes:
    """An image of many colours, as a photograph has."""
    return mask_png(RNG.integers(0, 255, (height, width, 3)).astype(np.uint8))


def yolo_pairs(count: int = 3, **texts: str) -> dict[str, bytes | str]:
    """YOLO images 0 … with one good line each, or what `texts` gives for `i0`, `i1` …"""
    files: dict[str, bytes | str] = {"data.yaml": "names: [cell, ring]\n"}
    for number in range(count):
        files |= {f"images/{number}.png": picture(), f"labels/{number}.txt": texts.get(f"i{number}", LINE)}
    return files


def drawn(*rows: tuple[int, int, int]) -> bytes:
    """Horizontal stripes of these colours."""
    pixels = np.zeros((30, 40, 3), np.uint8)
    for number, colour in enumerate(rows):
        pixels[number * 10 :] = colour
    return mask_png(pixels)
