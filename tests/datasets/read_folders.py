"""Folders read in one go, and what was said about them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from datasets.formats import detect
from datasets.formats.fitting import fit_to_image
from datasets.formats.listing import Listing
from datasets.formats.neutral import Parsed


def read_folder(root: Path) -> Parsed:
    listing = Listing.of(root)
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
