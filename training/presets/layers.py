"""A look into a trained model: what each layer answers to a few images, its weights, and where a classifier looked.

Writes `layers/layers.json`, `layers/image-1.jpg` (the answer), `layers/cam-1.jpg` and, for each layer,
`layers/01-1.jpg` (its answer to image 1) and `layers/01-weights.jpg`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from . import image_cache, lite0, marks, samples, shown
from .run import COMPLETED, Refused, log_line

if TYPE_CHECKING:
    from .trainer import Trainer

FOLDER = "layers"
IMAGES = 3
MAX_LAYERS = 40
MAX_CHANNELS = 36  # drawn of a layer: those that vary most over the image
TILE = 48  # px of one channel
BINS = 24  # of the histogram of weights
HEAT = 0.5  # how much of the colours of a map covers its image
ANCHORS = np.array([(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float)  # as viridis
KINDS = (nn.Conv2d, nn.Linear)


def write(trainer: Trainer) -> int:
    """Fill the folder from the restored checkpoint; return the exit code.

    Raises:
        Refused: there is no checkpoint, or the image cannot be read.
    """
    if not trainer.at.step:
        raise Refused("There is no checkpoint to look into. Train until one was written.")
    if trainer.ranks.leads:
        folder = trainer.run.output_dir / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        facts = looked_into(trainer.task, trainer.average.model, folder) | {"step": trainer.at.step}
        (folder / "layers.tmp").write_text(json.dumps(facts, indent=1))
        (folder / "layers.tmp").replace(folder / "layers.json")
        trainer.run.report(trainer.at.step, {"progress": 1.0, "eta_s": 0})
        log_line(f"looked into {len(facts['layers'])} of {facts['of_layers']} layers at step {trainer.at.step}")
    trainer.ranks.wait()
    return COMPLETED


def looked_into(task: Any, model: nn.Module, folder: Path) -> dict[str, Any]:
    """Draw everything; what was drawn, as JSON."""
    model.eval().requires_grad_(requires_grad=True)
    images, names = _images(task)
    able = shown.for_task(task)
    pixels = marks.from_model(images, able.mean, able.std)
    with torch.no_grad():
        answers = able.answers(model, images) or [marks.Marks() for _ in images]
    for number, (image, own) in enumerate(zip(pixels, answers, strict=True), start=1):
        marks.write(marks.drawn(image, own), folder / f"image-{number}.jpg")
    every = [(name, module) for name, module in model.named_modules() if isinstance(module, KINDS)]
    with lite0.layers_apart(), _outputs(dict(every)) as outputs:
        logits = model(images)
        cams = _cams(task, dict(every), outputs, logits, pixels, folder)
    answered = list(outputs.items())
    step = max(1, -(-len(answered) // MAX_LAYERS))
    chosen = answered[::step] + (answered[-1:] if (len(answered) - 1) % step else [])
    layers = [
        _layer(number, name, dict(every)[name], output.detach(), folder)
        for number, (name, output) in enumerate(chosen, start=1)
    ]
    described = [{"name": name, "answer": own.caption} for name, own in zip(names, answers, strict=True)]
    return {"images": described, "layers": layers, "of_layers": len(every), "cams": cams}


def _images(task: Any) -> tuple[Tensor, list[str]]:
    """Return the input to inspect: the given image, or else some of the images to score."""
    image_path = os.environ.get("AIP_SHOW_IMAGE")
    if image_path:
        fitting = shown.for_task(task).fitting
        resize = fitting or (task.view.resize if hasattr(task, "view") else task.params["resize"])
        channels = getattr(task, "channels", 3)
        pixels = image_cache.pixels(Path(image_path), task.width, task.height, channels, resize)
        able, batch = shown.for_task(task), torch.from_numpy(pixels.copy())[None].float()
        mean, std = (torch.as_tensor(value).cpu() for value in (able.mean, able.std))
        return ((batch - mean) / std).permute(0, 3, 1, 2).to(task.device), [""]
    rows = samples.rows_of(task)[:IMAGES]
    return task.images(rows), [task.version.images[shown.for_task(task).image_of(row)].path for row in rows]


@contextmanager
def _outputs(layers: dict[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """The last output of each layer, in the order in which they answered."""
    outputs: dict[str, Tensor] = {}

    def make_hook(name: str) -> Any:
        def store(_module: nn.Module, _given: Any, output: Tensor) -> None:
            outputs[name] = output

        return store

    handles = [module.register_forward_hook(make_hook(name)) for name, module in layers.items()]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _cams(
    task: Any, layers: dict[str, nn.Module], outputs: dict[str, Tensor], logits: Any, pixels: np.ndarray, folder: Path
) -> list[dict[str, Any]]:
    """Draw where a classifier looked over each image; [] for models with another kind of output.

    Grad-CAM (Selvaraju et al. 2017): the maps of the last convolution, each weighted with the mean gradient of the
    likeliest class's logit, summed up, and without what speaks against the class.
    """
    if not isinstance(logits, Tensor) or logits.ndim != 2:
        return []
    able = [name for name in outputs if isinstance(layers[name], nn.Conv2d) and outputs[name].requires_grad]
    if not able:  # a network of somebody's own without convolutions
        return []
    name = able[-1]
    likeliest = logits.argmax(1)
    (slopes,) = torch.autograd.grad(logits.gather(1, likeliest[:, None]).sum(), outputs[name], retain_graph=True)
    heat = grad_cam(outputs[name].detach(), slopes)
    sure, names = shown.for_task(task).sure(logits.detach()), [str(entry["name"]) for entry in task.version.classes]
    cams = []
    for number, (image, image_heat) in enumerate(zip(pixels, heat, strict=True), start=1):
        marks.write(_heated(image, image_heat.cpu().numpy()), folder / f"cam-{number}.jpg")
        kind = int(likeliest[number - 1])
        cams.append({"image": number, "class": names[kind], "score": round(float(sure[number - 1, kind]), 4)})
    return [{**cam, "layer": name} for cam in cams]


def grad_cam(maps: Tensor, slopes: Tensor) -> Tensor:
    """Maps [N, C, h, w] and the class's gradients on them → what speaks for the class [N, h, w], 0 to 1 each."""
    heat = F.relu((slopes.mean((2, 3), keepdim=True) * maps).sum(1))
    return heat / heat.amax((1, 2), keepdim=True).clamp(min=1e-12)


def _layer(number: int, name: str, module: Any, output: Tensor, folder: Path) -> dict[str, Any]:
    weights = module.weight.detach().float().cpu()
    counts, edges = np.histogram(weights.numpy(), bins=BINS)
    picture = weights.ndim == 4 and min(weights.shape[2:]) > 1  # of kernels larger than a point
    facts = {
        "number": number,
        "name": name,
        "kind": type(module).__name__,
        "shape": list(output.shape[1:]),
        "weights": {
            "shape": list(weights.shape),
            "mean": float(weights.mean()),
            "std": float(weights.std()) if weights.numel() > 1 else 0.0,
            "bins": counts.tolist(),
            "from": float(edges[0]),
            "to": float(edges[-1]),
            "picture": picture,
        },
        "answer": {"mean": float(output.float().mean()), "std": float(output.float().std())},
    }
    if output.ndim == 4:
        for image, maps in enumerate(output.float().cpu().numpy(), start=1):
            marks.write(_grid(_varying(maps)), folder / f"{number:02d}-{image}.jpg")
    if picture:
        kernels = weights.permute(0, 2, 3, 1).numpy() if weights.shape[1] == 3 else weights.mean(1).numpy()
        marks.write(_grid(kernels[:MAX_CHANNELS]), folder / f"{number:02d}-weights.jpg")
    return facts


def _varying(maps: np.ndarray) -> np.ndarray:
    """Those channels [K, h, w] that vary most, in their order."""
    spread = maps.reshape(len(maps), -1).std(1)
    return np.asarray(maps[np.sort(np.argsort(-spread, kind="stable")[:MAX_CHANNELS])])


def _grid(tiles: np.ndarray) -> Image.Image:
    """Arrange maps [K, h, w] or color kernels [K, h, w, 3] side by side, each stretched to its own range."""
    columns = min(12, len(tiles))
    lines = -(-len(tiles) // columns)
    sheet = Image.new("RGB", (columns * (TILE + 2), lines * (TILE + 2)), (30, 30, 30))
    for index, tile in enumerate(tiles):
        low, high = float(tile.min()), float(tile.max())
        level = (tile - low) / max(high - low, 1e-12)
        drawn = Image.fromarray(_coloured(level) if tile.ndim == 2 else (255 * level).astype(np.uint8))
        where = (index % columns * (TILE + 2) + 1, index // columns * (TILE + 2) + 1)
        sheet.paste(drawn.resize((TILE, TILE), Image.Resampling.NEAREST), where)
    return sheet


def _coloured(level: np.ndarray) -> np.ndarray:
    """Map 0..1 [h, w] to colors of increasing brightness [h, w, 3]."""
    position = level * (len(ANCHORS) - 1)
    low = np.clip(position.astype(int), 0, len(ANCHORS) - 2)
    part = (position - low)[..., None]
    return np.asarray((ANCHORS[low] * (1 - part) + ANCHORS[low + 1] * part).round().astype(np.uint8))


def _heated(pixels: np.ndarray, heat: np.ndarray) -> Image.Image:
    """An image below the map of where its model looked."""
    image = marks.drawn(pixels, marks.Marks())
    level = np.asarray(Image.fromarray(heat.astype(np.float32)).resize(image.size, Image.Resampling.BILINEAR))
    mixed = np.asarray(image) * (1 - HEAT) + _coloured(level.clip(0, 1)) * HEAT
    return Image.fromarray(mixed.round().astype(np.uint8))
