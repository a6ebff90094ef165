"""Dataset versions on disk, as evaluations find them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from tests.inference.pictures import RGB
from tests.inference.tiny import COLOURS

CLASSES = [{"id": 11 + i, "name": name, "supercategory": ""} for i, name in enumerate(COLOURS)]
SIZE = 128  # of every image, twice the tiny detector's input


def detection(root: Path, *, images: int = 6, seed: int = 0) -> Path:
    """Squares of the tiny detector's cell size; some are shifted or faint, so it makes mistakes."""
    rng = np.random.default_rng(seed)
    rows, coco_images, annotations = [], [], []
    for number in range(1, images + 1):
        pixels = np.zeros((SIZE, SIZE, 3), np.uint8)
        cells = rng.choice(64, 5, replace=False)
        for cell in cells:
            x, y = int(cell % 8) * 16, int(cell // 8) * 16
            colour = int(rng.integers(3))
            strength = float(rng.uniform(0.2, 1))
            pixels[y : y + 16, x : x + 16] = (np.array(RGB[COLOURS[colour]]) * strength).astype(np.uint8)
            shift, label = int(rng.integers(0, 9)), colour if rng.random() > 0.1 else (colour + 1) % 3
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": number,
                    "category_id": 11 + label,
                    "bbox": [x + shift, y, 16, 16],
                    "area": 256,
                    "iscrowd": 0,
                }
            )
        name = f"{number:03d}.png"
        _save(root, name, pixels)
        split = "test" if number > 1 else "train"
        rows.append({"path": name, "sha256": "", "width": SIZE, "height": SIZE, "split": split, "label": None})
        coco_images.append({"id": number, "file_name": name, "width": SIZE, "height": SIZE, "split": split})
    coco = {
        "info": {}, "licenses": [], "images": coco_images, "annotations": annotations, "categories": CLASSES
    }  # fmt: skip
    (root / "annotations.json").write_text(json.dumps(coco))
    return _describe(root, "detection", rows)


def keypoints(root: Path, *, images: int = 6, seed: int = 0) -> Path:
    """Two colored squares on each image, the center of each a keypoint; every third one is annotated with an offset."""
    rng = np.random.default_rng(seed)
    rows, coco_images, annotations = [], [], []
    for number in range(1, images + 1):
        pixels = np.zeros((SIZE, SIZE, 3), np.uint8)
        for left in (8, 72):
            colour, x, y = int(rng.integers(3)), left + int(rng.integers(0, 28)), 20 + int(rng.integers(0, 60))
            pixels[y : y + 12, x : x + 12] = RGB[COLOURS[colour]]
            offset = 5 if len(annotations) % 3 == 2 else 0
            keypoint = {"keypoints": [x + 6 + offset, y + 6, 2], "num_keypoints": 1}
            bbox = {"bbox": [left, y - 14, 40, 40], "area": 1600, "iscrowd": 0}
            ids = {"id": len(annotations) + 1, "image_id": number, "category_id": 11 + colour}
            annotations.append({**ids, **bbox, **keypoint})
        name = f"{number:03d}.png"
        _save(root, name, pixels)
        split = "test" if number > 1 else "train"
        rows.append({"path": name, "sha256": "", "width": SIZE, "height": SIZE, "split": split, "label": None})
        coco_images.append({"id": number, "file_name": name, "width": SIZE, "height": SIZE, "split": split})
    named = [
        {**model_class, "keypoints": [f"middle_of_{model_class['name']}"], "skeleton": []} for model_class in CLASSES
    ]
    coco = {"info": {}, "licenses": [], "images": coco_images, "annotations": annotations, "categories": named}
    (root / "annotations.json").write_text(json.dumps(coco))
    return _describe(root, "detection", rows)


def classification(root: Path, *, images: int = 12) -> Path:
    """One colour per image; every sixth label is wrong."""
    rows = []
    for number in range(images):
        colour = number % 3
        pixels = np.zeros((SIZE, SIZE, 3), np.uint8) + np.array(RGB[COLOURS[colour]], np.uint8)
        name = f"{COLOURS[colour]}/{number:03d}.png"
        _save(root, name, pixels)
        label = 11 + (colour if number % 6 else (colour + 1) % 3)
        rows.append({"path": name, "sha256": "", "width": SIZE, "height": SIZE, "split": "test", "label": label})
    return _describe(root, "classification", rows)


def _save(root: Path, name: str, pixels: np.ndarray) -> None:
    path = root / "images" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def _describe(root: Path, task: str, rows: list[dict]) -> Path:
    (root / "manifest.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    splits: dict[str, int] = {}
    for row in rows:
        splits[row["split"]] = splits.get(row["split"], 0) + 1
    facts = {
        "format": 1, "dataset_id": 1, "version": 1, "name": "colours", "task": task,
        "classes": CLASSES, "splits": splits, "images": len(rows), "annotations": 0,
    }  # fmt: skip
    (root / "dataset.json").write_text(json.dumps(facts))
    return root
