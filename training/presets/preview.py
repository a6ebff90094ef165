"""What a model would see, without training it: one batch as it is learned from, counts, sizes, and the time it takes.

Writes `preview/batch-1.jpg` … and `preview/preview.json`, first without the time, then with it.
"""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from . import lite0, marks, samples, shown
from .run import COMPLETED, TERMINATED, log_line

if TYPE_CHECKING:
    from .trainer import Trainer

FOLDER = "preview"
PICTURES = 12  # of a batch that are drawn
WARMING, STEPS = 2, 20  # optimizer steps that are not timed, and those that are
MAX_DURATION_S = 60.0  # that timing them may take
LAYERS = 400  # of the network that are listed
SIZES = (8, 16, 32, 96)  # px: bounds of the classes of object sizes


def write(trainer: Trainer) -> int:
    """Fill the folder; return the exit code."""
    trainer.run.listen()
    folder = trainer.run.output_dir / FOLDER
    facts = described(trainer) | {"prepared_s": round(trainer.used_s(), 1)}
    batch = trainer.read((0, 0)).result()
    if trainer.ranks.leads:
        folder.mkdir(parents=True, exist_ok=True)
    inputs = _model_input(trainer, batch, trainer.draws(0))
    facts["pictures"] = _draw(trainer, batch, inputs, folder)
    if inputs is not None:
        facts["network"] = outline(trainer.task.model, inputs[:2])
    _write(trainer, folder, facts)
    facts |= timed(trainer)
    if trainer.run.terminated:
        return TERMINATED
    _write(trainer, folder, facts)
    if trainer.ranks.leads:
        trainer.run.report(0, {"progress": 1.0, "eta_s": 0})
        log_line(f"{facts['step_ms']:.0f} ms a step, {facts['epoch_s']:.1f} s for a pass over the data")
    trainer.ranks.wait()
    return COMPLETED


def described(trainer: Trainer) -> dict[str, Any]:
    """Return counts and sizes, as JSON; sizes are in pixels."""
    task: Any = trainer.task
    counted, classes = shown.for_task(task).counts()
    images_of = shown.for_task(task).image_of  # a row may be an object: several of them are one image
    facts = {
        "images": {
            name: len(set(map(images_of, rows))) for name, rows in (("learn", task.learn), ("score", task.score))
        },
        "counted": counted,
        "classes": [{"name": name, "count": count} for name, count in classes.items()],
        "input": [task.width, task.height] if hasattr(task, "width") else None,
        "batch_size": trainer.batch_size,
        "steps_per_epoch": trainer.per_epoch,
    }
    if version := getattr(task, "version", None):
        learn = [version.images[images_of(row)] for row in task.learn]
        areas = sorted((image.width * image.height, image.width, image.height) for image in learn)
        facts["originals"] = {"smallest": areas[0][1:], "usual": areas[len(areas) // 2][1:], "largest": areas[-1][1:]}
    if view := getattr(task, "view", None):
        facts |= {
            "window": list(view.window) if view.windowed else None,
            "resize": view.resize,
            "objects": view.objects,
            "lost": view.lost,
            "sizes": _sizes(task),
        }
    return facts


def timed(trainer: Trainer) -> dict[str, Any]:
    """Run real steps and return their duration and that of an epoch. Fewer steps are run where they are slow."""
    began = stepped = time.monotonic()
    done, position = 0, (0, 0)
    ahead = trainer.read(position)
    while done < WARMING + STEPS and not trainer.run.terminated:
        batch = ahead.result()
        position = (0, (position[1] + 1) % trainer.per_epoch)
        ahead = trainer.read(position)
        trainer.learn(batch, 0.0)
        _settle(trainer)
        done += 1
        if done == WARMING:
            stepped = time.monotonic()
        (late,) = trainer.ranks.highest(float(time.monotonic() - began > MAX_DURATION_S))
        if late and done > WARMING:
            break
    step_s = (time.monotonic() - stepped) / max(done - WARMING, 1)
    return {
        "steps_timed": max(done - WARMING, 0),
        "step_ms": round(1000 * step_s, 2),
        "epoch_s": round(step_s * trainer.per_epoch, 2),
        "memory_mib": _memory_mib(trainer),
        "slowdown": round(trainer.waiting.slowdown(), 2),
    }


def _settle(trainer: Trainer) -> None:
    if trainer.ranks.device.type == "cuda":
        torch.cuda.synchronize(trainer.ranks.device)


def _memory_mib(trainer: Trainer) -> int:
    """The most memory that learning took: of the card, or of the process."""
    if trainer.ranks.device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(trainer.ranks.device) >> 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@torch.inference_mode()
def outline(model: nn.Module, images: torch.Tensor) -> dict[str, Any]:
    """The layers that have no layers of their own, in the order in which they answer, with the size of the answer to
    one image and their weights; and all weights of the model."""
    layers: list[dict[str, Any]] = []

    def noting(name: str) -> Any:
        def note(module: nn.Module, _given: Any, answer: Any) -> None:
            shape = list(answer.shape[1:]) if isinstance(answer, torch.Tensor) else []
            own = sum(p.numel() for p in module.parameters(recurse=False))
            layers.append({"name": name, "kind": type(module).__name__, "answer": shape, "weights": own})

        return note

    leaves = [(name, module) for name, module in model.named_modules() if not any(True for _ in module.children())]
    handles = [module.register_forward_hook(noting(name)) for name, module in leaves]
    was_training = model.training
    try:
        with lite0.layers_apart():
            model.eval()(images)
    finally:
        model.train(was_training)
        for handle in handles:
            handle.remove()
    return {"weights": sum(p.numel() for p in model.parameters()), "of_layers": len(layers), "layers": layers[:LAYERS]}


def _draw(trainer: Trainer, batch: Any, inputs: Any, folder: Path) -> int:
    """Draw the batch as the model receives it; return the number of images."""
    task, able, draws = trainer.task, shown.for_task(trainer.task), trainer.draws(0)
    if inputs is None or not trainer.ranks.leads:
        return 0
    pixels = marks.from_model(inputs[:PICTURES], able.mean, able.std)
    with torch.inference_mode():
        targets = able.targets(batch, draws)[:PICTURES]
    for number, (image, own) in enumerate(zip(pixels, targets, strict=False), start=1):
        marks.write(marks.drawn(image, own), folder / f"batch-{number}.jpg")
    _labels(task, folder)
    return len(pixels)


def _labels(task: Any, folder: Path) -> None:
    """The images that are scored on, with what is there: they are not varied."""
    rows = samples.rows_of(task)
    for number, image in enumerate(samples.drawn(task, rows, shown.for_task(task).truths(rows)), start=1):
        marks.write(image, folder / f"score-{number}.jpg")


def _model_input(trainer: Trainer, batch: Any, draws: Any) -> Any:
    """Return what the loss passes to the model: images [N, C, H, W], however the task makes them; None if none."""
    inputs: list[Any] = []

    def record(_model: nn.Module, args: tuple[Any, ...]) -> None:
        inputs.extend(value for value in args[:1] if isinstance(value, torch.Tensor) and value.ndim == 4)

    handle = trainer.task.model.register_forward_pre_hook(record)
    try:
        trainer.task.model.train()
        with torch.no_grad():
            trainer.task.loss(trainer.task.model, batch, draws, trainer.ranks)
    finally:
        handle.remove()
    return inputs[0] if inputs else None


def _sizes(task: Any) -> list[dict[str, Any]]:
    """How many objects there are of each size at the model's input: the side of a square of the same area."""
    boxes = np.concatenate([task.fitted[row] for row in task.learn]) if len(task.learn) else np.zeros((0, 4))
    sides = np.sqrt(np.maximum((boxes[:, 2:4] - boxes[:, :2]).prod(1), 0))
    counts = np.bincount(np.searchsorted(SIZES, sides, side="right"), minlength=len(SIZES) + 1)
    bounds = [*SIZES, None]
    return [{"below": bound, "count": int(count)} for bound, count in zip(bounds, counts, strict=True)]


def _write(trainer: Trainer, folder: Path, facts: dict[str, Any]) -> None:
    if trainer.ranks.leads:
        (folder / "preview.tmp").write_text(json.dumps(facts, indent=1))
        (folder / "preview.tmp").replace(folder / "preview.json")
