"""Altered copies of images: what a camera, a lens, a network and the light do to them.

After D. Hendrycks, T. Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations,
ICLR 2019 (arXiv 1903.12261): the strengths are their severities 1, 3 and 5, their blur scaled from images of 224
pixels. Rotation is not among theirs, and only for tasks whose truth says nothing of places.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from PIL import Image, ImageFilter

STRENGTHS = (1, 2, 3)
BLUR = (1.0, 3.0, 6.0)  # standard deviation in pixels of an image whose shorter side has 224
NOISE = (0.08, 0.18, 0.38)  # standard deviation, of values from 0 to 1
QUALITY = (25, 15, 7)  # of JPEG
LIGHT = (0.1, 0.3, 0.5)  # added to the brightness, of values from 0 to 1
DEGREES = (5.0, 15.0, 30.0)
AT_ONCE = 1 << 20  # pixels that are changed in one array
SIDE = 224


def blur(image: Image.Image, strength: int, seed: int) -> Image.Image:
    """Out of focus."""
    return image.filter(ImageFilter.GaussianBlur(BLUR[strength] * min(image.size) / SIDE))


def noise(image: Image.Image, strength: int, seed: int) -> Image.Image:
    """Gaussian noise of a sensor in the dark; the same for the same seed."""
    chance = np.random.default_rng((seed, strength))

    def noisy(values: np.ndarray) -> np.ndarray:
        return values + chance.normal(0, 255 * NOISE[strength], values.shape).astype(np.float32)

    return _changed(image, noisy)


def jpeg(image: Image.Image, strength: int, seed: int) -> Image.Image:
    """Compress strongly."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=QUALITY[strength])
    with Image.open(buffer, formats=("JPEG",)) as opened:
        opened.load()
        return opened.convert(image.mode)


def brightness(image: Image.Image, strength: int, seed: int) -> Image.Image:
    """Too much light."""
    return _changed(image, lambda values: values + 255 * LIGHT[strength])


def rotation(image: Image.Image, strength: int, seed: int) -> Image.Image:
    """Held askew, to either side; the corners are black."""
    return image.rotate(DEGREES[strength] * (1 if seed % 2 else -1), Image.Resampling.BILINEAR)


def _changed(image: Image.Image, change: Callable[[np.ndarray], np.ndarray]) -> Image.Image:
    """The image with its values changed, some rows after the other: a large one would fill the memory as floats."""
    made = Image.new(image.mode, image.size)
    rows = max(1, AT_ONCE // max(1, image.width))
    for top in range(0, image.height, rows):
        part = image.crop((0, top, image.width, min(image.height, top + rows)))
        values = change(np.asarray(part, np.float32)).clip(0, 255).round().astype(np.uint8)
        made.paste(Image.fromarray(values, image.mode), (0, top))
    return made


Change = Callable[[Image.Image, int, int], Image.Image]
ANYWHERE: dict[str, Change] = {"blur": blur, "noise": noise, "jpeg": jpeg, "brightness": brightness}
WHOLE: dict[str, Change] = {**ANYWHERE, "rotation": rotation}  # where the truth is about the whole image


def copy(image: Image.Image, kind: str, strength: int, *, seed: int) -> Image.Image:
    """An altered copy of an upright image, grey or in colours; `strength` from 1 to 3."""
    plain = image if image.mode in ("L", "RGB") else image.convert("RGB")
    return WHOLE[kind](plain, strength - 1, seed)
