"""The image segmenter: a class for each pixel. Start with `python -m presets.segment`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import boxes as geometry
from . import (
    data,
    distill,
    export,
    image_cache,
    lanes,
    lite0,
    masks,
    phases,
    points,
    segmenter,
    shown,
    tiles,
    view,
    warp,
)
from .events import with_events
from .marks import Marks
from .ranks import Ranks, join
from .run import Refused, Run, log_line, refusals_without_traceback
from .segment_card import CARD
from .tiling.maps import Blend
from .trainer import Trainer

COUNTED = 500  # images whose pixels are counted for the weights of classes
MAX_WEIGHT = 10.0  # of a pixel of a rare class, to one of the most frequent
PX_PER_CORE_S = 480_000  # learned from in a second of one CPU core; only the order of magnitude matters
FORWARD = 0.4  # of learning from an image is looking at it


class Segmentation(shown.Shown):
    """The task the trainer works on."""

    heads: tuple[str, ...] = ("what.",)
    metric = "val/miou"

    def __init__(self, run: Run, params: dict[str, Any], ranks: Ranks) -> None:
        self.params, self.device = params, ranks.device
        self.version = data.read(run.dataset_dir)
        self.names = [str(entry["name"]) for entry in self.version.classes]
        if len(self.names) > masks.MAX_CLASSES:
            raise Refused(f"{len(self.names)} classes are too many: a mask tells {masks.MAX_CLASSES} apart.")
        rows = data.annotated_rows(self.version)
        shapes = self._shapes(rows)
        self.learn, self.score, scored = data.split(self.version, rows, params)
        of_class = [self.version.class_index[shape["category_id"]] for row in self.learn for shape in shapes[row]]
        self.objects = np.bincount(of_class, minlength=len(self.names)).tolist()
        truth = [data.corners(shapes[row]) for row in range(len(self.version.images))]
        self.view = view.for_training(
            run, self.version, self.learn, [truth[row] for row in self.learn], {**params, "strides": "auto"},
            cores=ranks.cores(), px_per_core_s=PX_PER_CORE_S,
        )  # fmt: skip
        self.facts = {"view": dataclasses.asdict(self.view)}
        self.width, self.height = self.view.input_size
        self.tiles: tiles.Tiles | None = None
        with phases.packing(run, params, ranks):
            self._open(run, shapes, truth)
        self.regions = self.tiles.regions(self.learn) if self.tiles else [tiles.Region(row) for row in self.learn]
        self.rows, looks = len(self.regions), self.tiles.count(self.score) if self.tiles else len(self.score)
        self.rows_scored = FORWARD * looks * self.width * self.height / math.prod(self.view.window)
        self.fitted = [self.view.to_input(i, b) for i, b in zip(self.version.images, truth, strict=True)]
        self.class_weights = self._class_weights().to(self.device)
        self.model = self._build()
        self.teacher = distill.chosen(run, params, taught_by, classes=self.names, device=self.device, ground=1)
        if self.teacher and self.teacher.tiled != bool(self.tiles):
            ours, theirs = ("tiles", "whole images") if self.tiles else ("whole images", "tiles")
            raise Refused(
                f"The teacher looks at {theirs}, this training at {ours}: change tile, or choose another one."
            )
        if ranks.leads:
            counts = f"{len(self.learn)} images to learn from, {len(self.score)} to score on ({scored})"
            log_line(f"{counts}, {self.width}×{self.height}")
            for line in self.view.lines():
                log_line(line)
            if self.teacher:
                log_line(f"learns after {params['teacher']} ({self.teacher.architecture}) as well")

    def _open(self, run: Run, shapes: list[list[masks.Shape]], boxes: list[np.ndarray]) -> None:
        """Open the caches of images and masks, made first where they are missing."""
        params, cache, instead = self.params, run.cache_dir, self.params["boxes"]
        if self.view.tile:
            overlap, side = params["tile_overlap"], self.view.tile
            self.tiles = tiles.Tiles(self.version, boxes, side, overlap, cache, parts=True)
            self.blocks = masks.blocks(self.version, shapes, cache, side=side, boxes=instead)
            return
        width, height, resize = self.width, self.height, self.view.resize
        self.image_cache = image_cache.open_or_make(
            self.version, cache, width=width, height=height, channels=3, resize=resize
        )
        self.masks = masks.open_or_make(
            self.version, shapes, cache, width=width, height=height, resize=resize, boxes=instead
        )

    def _shapes(self, rows: list[int]) -> list[list[masks.Shape]]:
        """The shapes of each image; refuse a version that has none to draw masks from."""
        name = self.version.name or "The dataset"
        shapes = masks.read(self.version) if rows else []
        every = [shape for own in shapes for shape in own]
        if not every:
            raise Refused(f"{name} has no outlines yet. Annotate some images, then train.")
        boxes = sum(masks.is_box(shape) for shape in every)
        if self.params["boxes"] == "ignore" and boxes == len(every):
            raise Refused(f"{name} has only boxes, and boxes=ignore leaves them out. Choose ellipse or whole.")
        if boxes:
            instead = {"ellipse": "the ellipse in its box", "whole": "its box", "ignore": "nothing"}
            log_line(
                f"{boxes} of {len(every)} objects have no outline: {instead[self.params['boxes']]} stands for each"
            )
        return shapes

    def _class_weights(self) -> Tensor:
        """Return the weight of a pixel of each class: rare classes weigh more, by the square root of their rarity."""
        counts = np.zeros(len(self.names) + 1)
        for row in points.sample(list(range(self.rows)), COUNTED / self.rows):
            counts += np.bincount(self._read([row])[1].ravel(), minlength=masks.IGNORED + 1)[: len(counts)]
        weights = np.sqrt(counts.max() / counts.clip(min=1)).clip(max=MAX_WEIGHT)
        return torch.from_numpy(weights).float()

    def _build(self) -> nn.Module:
        torch.manual_seed(self.params["seed"])
        weights = lite0.pretrained_weights() if self.params["architecture"] == "lite0" else None
        self.pretrained = weights is not None
        net = network(self.params, len(self.names), frozen_norms=self.pretrained)
        if weights:
            lite0.load_pretrained(net.get_submodule("backbone"), weights)  # type: ignore[arg-type]  # made by network()
        return net

    # Learning -----------------------------------------------------------------------------------------------

    def optimizer(self) -> torch.optim.Optimizer:
        """AdamW; pretrained layers learn slower than the fresh ones."""
        return lite0.optimizer(self.model, self.params, pretrained=self.pretrained)

    def load(self, rows: list[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Pixels [n, H, W, 3] and masks [n, H, W] uint8, boxes [n, K, 4] and which of the K are real [n, K]."""
        pixels, drawn = self._read(rows)
        boxes = [self._boxes(self.regions[row]) for row in rows]
        padded, _, valid = geometry.padded([(own, np.zeros(len(own), np.int64)) for own in boxes])
        return torch.from_numpy(pixels), torch.from_numpy(drawn), padded, valid

    def _read(self, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Pixels [n, H, W, 3] and masks [n, H, W] of regions that are learned from."""
        chosen = [self.regions[row] for row in rows]
        if self.tiles:
            pixels = np.stack([self.tiles.around(region) for region in chosen])
            return pixels, np.stack([self.tiles.around(region, self.blocks)[..., 0] for region in chosen])
        images = [region.row for region in chosen]
        return self.image_cache.rows(images), self.masks.rows(images)[..., 0]

    def _boxes(self, region: tiles.Region) -> np.ndarray:
        """Boxes [K, 4] around what a region shows of objects, in its pixels."""
        boxes = region.inside(self.fitted[region.row])
        if not self.tiles:
            return boxes
        cut = boxes.clip(0, [self.view.width, self.view.height] * 2)
        return np.asarray(cut[(cut[:, 2:] > cut[:, :2]).all(1)])

    def draw(self, generator: torch.Generator, count: int) -> dict[str, Tensor]:
        """How each image is mirrored, scaled, moved and lit, and which object a window looks at."""
        return warp.draw(self.params, generator, count)

    def loss(self, model: nn.Module, batch: Any, draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """Cross-entropy of the pixels, and Dice: the uncovered share of each class in an image."""
        pixels, truth, boxes, valid = (part.to(self.device, non_blocking=True) for part in batch)
        transform = warp.Warp.from_draws(draws, self.view, boxes, valid)
        x = transform.images(pixels)
        logits = segmenter.enlarged(model(x), *transform.window)
        wrong, uncovered = segmenter.losses(logits, transform.masks(truth), self.class_weights)
        losses = {"pixel_loss": wrong, "dice_loss": self.params["dice"] * uncovered}
        if self.teacher is None:
            return losses
        taught = self.teacher.answers(x, lite0.MEAN, lite0.STD, student_size=self.view.input_size)
        soft = distill.soft_loss(logits, segmenter.enlarged(taught, *transform.window), self.params["temperature"])
        share = self.params["distill"]
        return {**{name: (1 - share) * loss for name, loss in losses.items()}, "soft_loss": share * soft}

    # Scoring ------------------------------------------------------------------------------------------------

    def images(self, rows: list[int]) -> Tensor:
        """Normalised images [n, 3, H, W] as the finished model sees them; of large images the busiest tile."""
        if self.tiles:
            pixels = np.concatenate([self.tiles.pixels(row, [self.tiles.busiest(row)]) for row in rows])
            return lite0.normal(pixels, self.device)
        return lite0.normal(self.image_cache.rows(rows), self.device)

    @torch.inference_mode()
    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """Overlap of what is there with what was answered, over all pixels of these images at input size.

        Of images that are looked at in tiles, over their own pixels.
        """
        model.eval()
        mine = rows[ranks.rank :: ranks.world]
        on_cpu = self.device.type == "cpu"
        at_once = 1 if on_cpu else 16
        classes = len(self.names) + 1

        def counted(start: int) -> np.ndarray:
            some = mine[start : start + at_once]
            with torch.inference_mode():
                logits = segmenter.enlarged(model(self.images(some)), self.width, self.height)
                answers = logits.argmax(1).cpu().numpy()
            phases.advance(len(some))
            return pairs(self.masks.rows(some)[..., 0], answers, classes)

        def counted_in_tiles(row: int) -> np.ndarray:
            phases.advance()
            return self._counted_in_tiles(model, row, at_once)

        look, starts = (counted_in_tiles, mine) if self.tiles else (counted, range(0, len(mine), at_once))
        counts = lanes.for_scoring().map(look, starts) if on_cpu else [look(start) for start in starts]
        return figures(sum(ranks.gather(counts), np.zeros((classes, classes), np.int64)), self.names)

    def _counted_in_tiles(self, model: nn.Module, row: int, at_once: int) -> np.ndarray:
        """Return `pairs` of an image whose tiles are merged as endpoints merge them."""
        image_tiles: Any = self.tiles
        width, height = image_tiles.sizes[row]
        counts = np.zeros((len(self.names) + 1,) * 2, np.int64)

        def count(top: int, answers: np.ndarray) -> None:
            there = self.blocks.part(row, 0, top, width, len(answers))[..., 0]
            counts[:] += pairs(there, answers, len(counts))

        blend = Blend((width, height), self.view.input_size, count)
        for places, pixels in image_tiles.looks(row, at_once):
            with torch.inference_mode():
                logits = model(lite0.normal(pixels, self.device)).float().cpu().numpy()
            for corner, own in zip(places, logits, strict=True):
                blend.add(corner, own)
        blend.end()
        return counts

    # For people to see --------------------------------------------------------------------------------------

    def counts(self) -> tuple[str, dict[str, int]]:
        return "objects", dict(zip(self.names, self.objects, strict=True))

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        _, truth, boxes, valid = (part.to(self.device) for part in batch)
        drawn = warp.Warp.from_draws(draws, self.view, boxes, valid).masks(truth)
        return [Marks(mask=mask, names=self.names) for mask in drawn.cpu().numpy().astype(np.uint8)]

    def truths(self, rows: list[int]) -> list[Marks]:
        if self.tiles:
            places, side = [(row, *self.tiles.busiest(row)) for row in rows], self.view.tile
            parts = [self.blocks.part(*tile, side, side)[..., 0] for tile in places]
            return [Marks(mask=mask, names=self.names) for mask in parts]
        return [Marks(mask=mask, names=self.names) for mask in self.masks.rows(rows)[..., 0]]

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        logits = model(images)
        return [Marks(mask=mask, names=self.names) for mask in logits.argmax(1).cpu().numpy().astype(np.uint8)]

    # Giving back --------------------------------------------------------------------------------------------

    def export(self, model: nn.Module, folder: Path, figures: dict[str, float]) -> None:
        """Write the finished model; its logits are coarser than its input, and the reader enlarges them."""
        metadata = {
            "task": CARD.task,
            "architecture": self.params["architecture"],
            "preset": CARD.name,
            "classes": [{"id": int(entry["id"]), "name": str(entry["name"])} for entry in self.version.classes],
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": 3, "dtype": "float32",
                "layout": "NCHW", "mean": [lite0.MEAN] * 3, "std": [lite0.STD] * 3,
                **self.view.described(self.params),
            },
            "output": {"logits": "logits"},
            "metrics": figures,
            "params": self.params,
        }  # fmt: skip
        export.write(model, folder, outputs=("logits",), samples=self.images(self.score[:8]), metadata=metadata)


def pairs(truth: np.ndarray, answers: np.ndarray, classes: int) -> np.ndarray:
    """Count the pixels of each class [rows] that were predicted as each class [columns], without ignored ones."""
    labeled = truth != masks.IGNORED
    both = truth[labeled].astype(np.int64) * classes + answers[labeled]
    return np.bincount(both, minlength=classes**2).reshape(classes, classes)


def figures(counts: np.ndarray, names: list[str]) -> dict[str, float]:
    """Return mean IoU over the background and all present classes, pixel accuracy, and the IoU of each class."""
    there, right = counts.sum(1), counts.diagonal()
    iou = right / np.maximum(there + counts.sum(0) - right, 1)
    metrics = {
        "val/miou": float(iou[there > 0].mean()) if there.any() else 0.0,
        "val/pixel_accuracy": float(right.sum() / max(there.sum(), 1)),
    }
    return metrics | {f"val/iou/{n}": float(iou[p]) for p, n in enumerate(names, start=1) if there[p]}


def network(params: Mapping[str, Any], classes: int, *, frozen_norms: bool) -> nn.Module:
    """The network for `classes` and the ground, with fresh weights; frozen norms are for pretrained ones."""
    if params["architecture"] == "unet":
        return segmenter.UNet(classes + 1, width=params["net_width"])
    strides = tuple(stride for stride in segmenter.STRIDES if stride >= int(params["stride"]))
    frozen = params["frozen_blocks"] if frozen_norms else 0
    backbone = lite0.Lite0(strides, frozen_blocks=frozen, frozen_norms=frozen_norms)
    return segmenter.Segmenter(backbone, classes + 1, width=params["head_width"])


def taught_by(metadata: Mapping[str, Any]) -> nn.Module:
    """Build the network of a finished segmenter, without its weights."""
    own = {"architecture": metadata["architecture"], **metadata["params"]}
    return network(own, len(metadata["classes"]), frozen_norms=False)


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    params = CARD.read(run.params())
    ranks = join()
    try:
        return Trainer(Segmentation(run, params, ranks), run, params, ranks).train()
    finally:
        ranks.leave()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
