"""Images with their predictions drawn over them, for pages."""

from __future__ import annotations

import base64
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from django.utils.translation import gettext as _
from numpy.typing import NDArray
from PIL import Image

from aiplatform.lib import class_colors
from inference.registry import prediction_lines, prediction_shapes
from inference.registry.prediction_lines import Line
from training.presets.tiling import runs

MAX_SHAPES = 300  # drawn on one picture
MAX_MASKS = 20
MASK_SIDE = 320  # longest side of a drawn mask
MASK_ALPHA = 140
CARD_WIDTH_PX, CARD_HEIGHT_PX = 260, 190  # of an image in a gallery


def card(line: Line, colors: Mapping[int, str], *, placed: bool) -> dict[str, Any]:
    """Return what is drawn of the predictions of an image, and their summary.

    Args:
        colors: id of a class → its color.
        placed: the answers lie somewhere on the picture.
    """
    shown = line["predictions"][:MAX_SHAPES]
    masked = [prediction for prediction in shown if prediction_shapes.mask_of(prediction, line)][:MAX_MASKS]
    return {
        "n": line["n"],
        "path": line["path"],
        "width": line["width"],
        "height": line["height"],
        "text_size": f"{_text_size(line):.0f}",
        "boxes": [] if masked else list(_boxes(shown, line, colors)),
        "outlines": list(_outlines(shown, colors)),
        "dots": [
            {"d": f"M{x:g} {y:g}h0", "word": name}
            for prediction in shown
            for name, (x, y) in prediction_shapes.points_of(prediction).items()
        ],
        "overlay": _overlay(masked, line, colors) or _heat(shown),
        "said": summarize(line, placed=placed),
    }


def _boxes(shown: Sequence[dict[str, Any]], line: Line, colors: Mapping[int, str]) -> Iterator[dict[str, str]]:
    for prediction in shown:
        box = prediction_shapes.box_of(prediction, line["width"], line["height"])
        if box and not prediction_shapes.rings_of(prediction):
            x1, y1, x2, y2 = box
            corner = {"x": f"{x1:g}", "y": f"{y1:g}", "w": f"{x2 - x1:g}", "h": f"{y2 - y1:g}"}
            score = {
                "score": f"{prediction_shapes.score_of(prediction):.2f}",
                "text_y": f"{max(y1, _text_size(line)):g}",
            }
            yield corner | score | {"word": _label(prediction), "color": _color(prediction, colors)}


def _text_size(line: Line) -> float:
    """The font size, in pixels of the image, that is about 12 pixels of the page."""
    return 12 * max(line["width"] / CARD_WIDTH_PX, line["height"] / CARD_HEIGHT_PX)


def _outlines(shown: Sequence[dict[str, Any]], colors: Mapping[int, str]) -> Iterator[dict[str, str]]:
    for prediction in shown:
        if rings := prediction_shapes.rings_of(prediction):
            path = "".join(
                "M" + "L".join(f"{x:g} {y:g}" for x, y in zip(ring[0::2], ring[1::2], strict=True)) + "Z"
                for ring in rings
            )
            yield {"d": path, "word": _label(prediction), "color": _color(prediction, colors)}


def _color(prediction: dict[str, Any], colors: Mapping[int, str]) -> str:
    """Return the color of a class; classes that are not listed have the default one of their number."""
    number = prediction.get("class_id")
    number = number if isinstance(number, int) else 0
    return colors.get(number) or class_colors.default_at(number)


def _label(prediction: dict[str, Any]) -> str:
    return f"{prediction_lines.word(prediction.get('name'), 100)} {prediction_shapes.score_of(prediction):.2f}"


def summarize(line: Line, *, placed: bool) -> str:
    """Summarize the predictions of an image: the count of each class if they are `placed`, else the class."""
    answers = line["predictions"]
    if not answers:
        return _("No detections.")
    first = answers[0]
    if "anomalous" in first:
        word = _("anomalous") if first["anomalous"] is True else _("normal")
        return f"{word} {prediction_shapes.score_of(first):.2f}"
    if "present" in first:
        there = [_label(prediction) for prediction in answers if prediction.get("present") is True]
        return ", ".join(there) or _("no tag")
    if placed:
        counted = Counter(prediction_lines.word(prediction.get("name"), 100) for prediction in answers)
        return ", ".join(f"{count} × {name}" for name, count in counted.most_common(6))
    return _label(first)


def _overlay(masked: Sequence[dict[str, Any]], line: Line, colors: Mapping[int, str]) -> str:
    """Return the masks of an image as one PNG, smaller than the image; "" if there is none."""
    if not masked:
        return ""
    step = max(1, -(-max(line["width"], line["height"]) // MASK_SIDE))
    rows, columns = -(-line["height"] // step), -(-line["width"] // step)
    pixels = np.zeros((rows, columns, 4), np.uint8)
    for prediction in masked:
        covered = _mask(prediction_shapes.mask_of(prediction, line) or {}, line)
        if covered is not None:
            pixels[covered[::step, ::step]] = (*class_colors.rgb_of(_color(prediction, colors)), MASK_ALPHA)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def _mask(mask: dict[str, Any], line: Line) -> NDArray[np.bool_] | None:
    """The pixels of a mask [height, width]; None where its runs do not fill the picture."""
    try:
        each = np.asarray(runs.lengths(mask["counts"]))
    except (ValueError, IndexError, OverflowError):
        return None
    if each.ndim != 1 or (each < 0).any() or int(each.sum()) != line["width"] * line["height"]:
        return None
    flat = np.repeat(np.arange(len(each)) % 2 == 1, each)
    return flat.reshape((line["height"], line["width"]), order="F")


def _heat(drawn: Sequence[dict[str, Any]]) -> str:
    """Where a picture is unusual, as the model drew it: letters of base64 alone."""
    text = prediction_lines.word(drawn[0].get("heat"), 1 << 20) if drawn else ""
    return text if text.isascii() and text.replace("+", "").replace("/", "").rstrip("=").isalnum() else ""
