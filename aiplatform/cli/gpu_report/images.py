"""Synthetic inputs of checks: a dataset of images, and folders that jobs may write to."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
from PIL import Image

from workers.execution import measurement_jobs, tickets


def folder_for_jobs(path: Path) -> Path:
    """Make a folder that belongs to the user of measurement jobs."""
    path.mkdir(parents=True, exist_ok=True)
    if uid := measurement_jobs.job_user(tickets.tier()[0]):
        os.chown(path, uid, uid)
    return path


def dataset(folder: Path, *, task: str, count: int, side: int) -> Path:
    """Write a dataset version with a class for each image: noise, brighter above or below; a quarter is for scoring."""
    draw = np.random.default_rng(0)
    (folder / "images").mkdir(parents=True)
    lines = []
    for number in range(count):
        pixels = draw.integers(0, 120, (side, side, 3), dtype=np.uint8)
        label = number % 2
        pixels[label * (side // 2) : (label + 1) * (side // 2)] += 120
        name = f"{number:05d}.jpg"
        Image.fromarray(pixels).save(folder / "images" / name, quality=90)
        line = {
            "path": name, "sha256": hashlib.sha256(name.encode()).hexdigest(), "width": side, "height": side,
            "split": "val" if number % 4 == 3 else "train", "label": label + 1,
        }  # fmt: skip
        lines.append(json.dumps(line))
    classes = [{"id": 1, "name": "above", "supercategory": ""}, {"id": 2, "name": "below", "supercategory": ""}]
    manifest = {"format": 1, "dataset_id": 1, "version": 1, "name": "gpu-report", "task": task}
    manifest |= {"classes": classes, "images": count, "annotations": 0}
    (folder / "dataset.json").write_text(json.dumps(manifest))
    (folder / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    return folder
