"""Answers for the same few images at each point of a training, kept as a strip through time.

`samples/truth/1.jpg` … show what is there, `samples/step-000123/1.jpg` … what the model answered at that step.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import nn

from . import marks, shown
from .task import Task

FOLDER = "samples"
IMAGES = 6
SIDE = 240  # of a kept image, in pixels
MAX_STEPS = 40  # kept; beyond it every second one is dropped, the newest never
_STEP = re.compile(r"step-\d{6,}$")


def rows_of(task: Task) -> list[int]:
    """The images that are shown each time: evenly spread over those that are scored on."""
    every = max(1, len(task.score) // IMAGES)
    return task.score[::every][:IMAGES]


@torch.inference_mode()
def write(outputs: Path, task: Any, model: nn.Module, step: int, figures: dict[str, float]) -> None:
    """Draw the current predictions of the model; the first time, also the ground truth."""
    able, rows, folder = shown.for_task(task), rows_of(task), outputs / FOLDER
    model.eval()
    answers = able.answers(model, task.images(rows))
    if not answers:
        return
    if not (folder / "truth").is_dir():
        _write(folder / "truth", drawn(task, rows, able.truths(rows)), {})
    facts = {"step": step, "metric": task.metric, "value": figures.get(task.metric)}
    _write(folder / f"step-{step:06d}", drawn(task, rows, answers), facts)
    _thin(folder)


def drawn(task: Any, rows: list[int], every: list[marks.Marks]) -> list[Image.Image]:
    """The images at `rows` as the finished model is given them, each with its marks."""
    able = shown.for_task(task)
    pixels = marks.from_model(task.images(rows), able.mean, able.std)
    return [marks.drawn(image, own, side=SIDE) for image, own in zip(pixels, every, strict=True)]


def _write(folder: Path, images: list[Image.Image], facts: dict[str, Any]) -> None:
    """Fill a folder, which appears atomically."""
    making = folder.with_name(f".{folder.name}")
    shutil.rmtree(making, ignore_errors=True)
    for number, image in enumerate(images, start=1):
        marks.write(image, making / f"{number}.jpg")
    (making / "about.json").write_text(json.dumps(facts))
    shutil.rmtree(folder, ignore_errors=True)
    making.rename(folder)


def _thin(folder: Path) -> None:
    folders = sorted(path for path in folder.iterdir() if _STEP.match(path.name))
    if len(folders) > MAX_STEPS:
        for path in folders[1:-1:2]:
            shutil.rmtree(path)
