"""Tiny models whose answers other languages must give as well, in every layout that their lines read."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
from PIL import Image

from tests.inference import foreign, tiny

RANDOM = np.random.default_rng(5)
NAMES = ("red", 'gr\u00fcn "x"', "</b>")


def picture(width: int, height: int) -> bytes:
    """A PNG of soft shapes and noise."""
    across, down = np.meshgrid(np.arange(width), np.arange(height))
    soft = np.stack([across * 255 / width, down * 255 / height, (across + down) * 255 / (width + height)], -1)
    noise = RANDOM.integers(0, 90, (height, width, 3))
    out = io.BytesIO()
    Image.fromarray(np.clip(soft + noise - 20, 0, 255).astype(np.uint8)).save(out, "PNG")
    return out.getvalue()


def _boxes(count: int) -> np.ndarray:
    """[count, 4] as centre and size, in parts of the input, overlapping here and there."""
    return np.concatenate([RANDOM.uniform(0.2, 0.8, (count, 2)), RANDOM.uniform(0.1, 0.4, (count, 2))], 1)


def _answers() -> dict[str, dict[str, np.ndarray]]:
    boxes, scores = _boxes(40), RANDOM.uniform(0, 1, (40, 3))
    pixels = boxes * 64
    half = pixels[:, 2:] / 2
    ends = np.concatenate([pixels[:, :2] - half, pixels[:, :2] + half], 1)
    sure = RANDOM.uniform(0, 1, (40, 1))
    kind = RANDOM.integers(0, 3, (40, 1))
    return {
        "yolo": {"yolo": np.concatenate([pixels, scores], 1).T[None]},
        "yolov5": {"yolov5": np.concatenate([pixels, sure, scores], 1)[None]},
        "end2end": {"end2end": np.concatenate([ends, sure, kind], 1)[None]},
        "detr": {"detr_logits": RANDOM.normal(0, 2, (1, 40, 4)), "detr_boxes": boxes[None]},
        "detr_sigmoid": {"detr_sigmoid_logits": RANDOM.normal(0, 2, (1, 40, 3)), "detr_boxes": boxes[None]},
    }


def folders(root: Path) -> dict[str, Path]:
    """Folders with model.onnx and model.json by the name of what they show."""
    made = {
        "classes": tiny.classifier(root / "classes"),
        "tags": tiny.tagger(root / "tags"),
        "boxes": tiny.detector(root / "boxes"),
        "boxes_letterbox": tiny.detector(root / "boxes_letterbox"),
        "classes_letterbox": tiny.classifier(root / "classes_letterbox", size=32),
    }
    for name in ("boxes_letterbox", "classes_letterbox"):
        _changed(made[name], resize="letterbox")
    _changed(made["classes"], mean=[123.7, 116.3, 103.5], std=[58.4, 57.1, 57.4], order="BGR")
    _changed(made["boxes"], threshold=0.05)
    for name, outputs in _answers().items():
        folder = root / name
        foreign.net(folder / "model.onnx", {role: value.astype(np.float32) for role, value in outputs.items()})
        input_spec = {**tiny.input_of(64, mean=[0, 0, 0], std=[255, 255, 255]), "name": "pixels", "resize": "letterbox"}
        tiny.describe(
            folder, task="detection", classes=NAMES, input=input_spec, output={role: role for role in outputs}
        )
        made[name] = folder
    return made


def _changed(folder: Path, threshold: float | None = None, **fields: object) -> None:
    path = folder / "model.json"
    description = json.loads(path.read_text())
    description["input"] |= fields
    if threshold is not None:
        description["decode"]["score_threshold"] = threshold
    path.write_text(json.dumps(description))
