"""The instance segmenter: a box and a mask for each object. Start with `python -m presets.instances`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from . import coco, data, lite0, masks, phases, tiles, warp, yolact
from .detect import Detection
from .events import with_events
from .instances_card import CARD
from .marks import Marks, boxed
from .ranks import Ranks, join
from .run import Refused, Run, log_line, refusals_without_traceback
from .tiling import runs
from .tiling.masks import Patch, patch
from .trainer import Trainer

MAX_PLACES = 48  # of an image that answer for an object learn its mask in a step
MAX_MASKS = 100  # of an image are scored


class Instances(Detection):
    """The detector's task, and outlines."""

    card = CARD
    metric = "val/mask_ap"
    outputs = ("boxes", "scores", "coefficients", "prototypes")

    def __init__(self, run: Run, params: dict[str, Any], ranks: Ranks) -> None:
        super().__init__(run, params, ranks)
        boxes, cache = params["boxes"], run.cache_dir
        with phases.packing(run, params, ranks):
            if self.tiles:
                self.blocks = masks.blocks(
                    self.version, self.shapes, cache, side=self.tiles.side, boxes=boxes, objects=True
                )
                return
            self.masks = masks.open_or_make(
                self.version, self.shapes, cache, width=self.width, height=self.height, resize=self.view.resize,
                boxes=boxes, objects=True,
            )  # fmt: skip

    def read_truth(self, rows: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Boxes and classes of each image's objects in the order their masks are drawn, which numbers them."""
        every = masks.read(self.version) if rows else []
        objects = [[shape for shape in own if not shape.get("iscrowd")] for own in every]
        count = sum(map(len, objects))
        name = self.version.name or "The dataset"
        if not count:
            raise Refused(f"{name} has no outlines yet. Annotate some images, then train.")
        boxed = sum(masks.is_box(shape) for own in objects for shape in own)
        if boxed == count and self.params["boxes"] == "ignore":
            raise Refused(f"{name} has only boxes, and boxes=ignore leaves them out. Choose ellipse or whole.")
        if boxed:
            instead = {"ellipse": "the ellipse in its box", "whole": "its box", "ignore": "nothing"}
            log_line(f"{boxed} of {count} objects have no outline: {instead[self.params['boxes']]} stands for each")
        self.shapes, self.objects = every, objects
        index = self.version.class_index
        return [
            (data.corners(own), np.array([index[shape["category_id"]] for shape in own], np.int64)) for own in objects
        ]

    def backbone(self, weights: dict[str, Tensor] | None, *more: int) -> lite0.Lite0:
        """The detector's, with one finer map for the prototypes."""
        return super().backbone(weights, yolact.FINEST, *more)

    def network(self, backbone: lite0.Lite0, usual: float) -> nn.Module:
        """The detector's network with prototypes."""
        params = self.params
        return yolact.Yolact(
            backbone, len(self.names), width=params["head_width"], depth=params["head_depth"], usual=usual,
            prototypes=params["prototypes"],
        )  # fmt: skip

    # Learning -----------------------------------------------------------------------------------------------

    def load(self, rows: list[int]) -> tuple[Tensor, ...]:
        """What the detector reads, and the number of the object each pixel shows [n, H, W] uint8."""
        chosen = [self.regions[row] for row in rows]
        if self.tiles:
            parts = [self.tiles.around(region, self.blocks) for region in chosen]
            each = [masks.of_blocks(part, self.shown_in(own)) for part, own in zip(parts, chosen, strict=True)]
            numbers = np.stack(each)
        else:
            numbers = self.masks.rows([region.row for region in chosen])[..., 0]
        return (*super().load(rows), torch.from_numpy(numbers))

    def loss(self, model: nn.Module, batch: Any, draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """The losses of the detector, and the cross-entropy of the masks inside their boxes."""
        pixels, boxes, classes, valid, numbers = (part.to(self.device, non_blocking=True) for part in batch)
        transform = warp.Warp.from_draws(draws, self.view, boxes, valid)
        boxes, valid = transform.boxes(boxes, valid)
        *answers, shares, prototypes = (answer.float() for answer in model(transform.images(pixels)))
        parts, chosen = self.detection_losses(answers, boxes, classes, valid, ranks, transform.window)
        half = yolact.FINEST // 2
        shown = transform.masks(numbers)[:, half :: yolact.FINEST, half :: yolact.FINEST]
        wrong, count = prototypes.sum() * 0, 0
        for image, own in enumerate(chosen):
            places = (own >= 0).nonzero()[:, 0]
            places = places[:: -(-len(places) // MAX_PLACES)] if len(places) else places
            objects = own[places]
            drawn = objects < masks.MAX_OBJECTS
            places, objects = places[drawn], objects[drawn]
            wrong = wrong + yolact.mask_loss(
                prototypes[image], shares[image, places], shown[image], objects + 1,
                boxes[image, objects] / yolact.FINEST,
            )  # fmt: skip
            count += len(places)
        total = ranks.mean(wrong.new_tensor(float(count))).clamp(min=1)
        return {**parts, "mask": self.params["mask_weight"] * wrong / total}

    # Scoring ------------------------------------------------------------------------------------------------

    def detections(self, row: int, answers: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the boxes of one image after suppression, each with its mask in the image's own pixels."""
        detections = sorted(super().detections(row, answers), key=lambda detection: -detection["score"])[:MAX_MASKS]
        image = self.version.images[row]
        for detection in detections:
            (left, top, wide, high), index = detection["bbox"], detection["place"]
            x0, y0 = int(left), int(top)
            sides = (x0, y0, min(image.width, math.ceil(left + wide)), min(image.height, math.ceil(top + high)))
            if self.tiles:
                covered = answers[2][index].drawn(sides)
            else:
                covered = self._drawn(row, np.tensordot(answers[2][index], answers[3], 1), sides)
            detection["segmentation"] = runs.encode(covered, at=(x0, y0), size=(image.width, image.height))
        return detections

    def _drawn(self, row: int, logits: np.ndarray, sides: tuple[int, int, int, int]) -> np.ndarray:
        """Which pixels [h, w] bool of a part of an image a mask covers, by its logits all over the input."""
        (x0, y0, x1, y1), (height, width) = sides, logits.shape
        if x1 <= x0 or y1 <= y0:
            return np.zeros((max(y1 - y0, 0), max(x1 - x0, 0)), bool)
        within = self.view.to_input(self.version.images[row], np.array([sides], np.float32))[0] / yolact.FINEST
        left, top, right, bottom = (float(side) for side in within.clip(0, [width, height] * 2))
        large = Image.fromarray(logits.astype(np.float32))
        size, box = (x1 - x0, y1 - y0), (left, top, right, bottom)
        return np.asarray(large.resize(size, Image.Resampling.BILINEAR, box=box)) > 0

    def masks_of_tile(
        self, corner: tuple[int, int], rows: np.ndarray, boxes: np.ndarray, answers: list[np.ndarray]
    ) -> list[Patch]:
        """Return the masks of these rows of a tile's outputs."""
        shares, prototypes = answers
        return [
            patch(shares[row], prototypes, box, corner, yolact.FINEST) for row, box in zip(rows, boxes, strict=True)
        ]

    def figures(self, detections: list[dict[str, Any]], rows: list[int]) -> dict[str, float]:
        """Return the detector's metrics, and COCO's AP of the masks."""
        metrics = super().figures([{k: v for k, v in item.items() if k != "segmentation"} for item in detections], rows)
        scored = {"val/mask_ap": 0.0, "val/mask_ap50": 0.0, "val/mask_ap75": 0.0}
        if not detections:
            return metrics | scored
        truth = coco.truth(self.version, self.names, self.truth, rows)
        each = iter(truth["annotations"])
        for row in rows:
            image = self.version.images[row]
            size = (image.width, image.height)
            for shape, item in zip(self.objects[row], each, strict=False):
                item["segmentation"] = masks.encoded(shape, size, self.params["boxes"])
        results = [
            {key: item[key] for key in ("image_id", "category_id", "score", "segmentation")} for item in detections
        ]
        stats, precision = coco.precision(truth, results, masks=True)
        scored = dict(zip(scored, stats, strict=True))
        for index, name in enumerate(self.names):
            if (precision[:, index] > -1).any():
                scored[f"val/mask_ap50/{name}"] = float(precision[:, index].mean())
        return metrics | scored

    # For people to see --------------------------------------------------------------------------------------

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        """Return the detector's targets, and the class of each pixel."""
        _, boxes, classes, valid, numbers = (part.to(self.device) for part in batch)
        shown = warp.Warp.from_draws(draws, self.view, boxes, valid).masks(numbers).cpu().numpy()
        each = zip(super().targets(batch, draws), shown, classes.cpu().numpy(), strict=True)
        return [replace(target, mask=_classes(own, kinds)) for target, own, kinds in each]

    def truths(self, rows: list[int]) -> list[Marks]:
        kinds = [self.truth[row][1] for row in rows]
        if self.tiles:
            parts, side = [tiles.Region(row, *self.tiles.busiest(row)) for row in rows], self.view.tile
            shown = [self.shown_in(part) for part in parts]
            pixels = [self.blocks.part(part.row, part.left, part.top, side, side) for part in parts]
            numbers = [masks.of_blocks(part, own) for part, own in zip(pixels, shown, strict=True)]
            kinds = [each[own] for each, own in zip(kinds, shown, strict=True)]
        else:
            numbers = list(self.masks.rows(rows)[..., 0])
        each = zip(super().truths(rows), numbers, kinds, strict=True)
        return [replace(truth, mask=_classes(own, of)) for truth, own, of in each]

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        """Boxes as the detector draws them, each with the mask it is answered with; the surer ones on top."""
        every = [answer.float().cpu().numpy() for answer in self.answering(model)(images)]
        size = (images.shape[3], images.shape[2])
        return [self._marked(size, *own) for own in zip(*every, strict=True)]

    def _marked(
        self, size: tuple[int, int], places: np.ndarray, scores: np.ndarray, shares: np.ndarray, prototypes: np.ndarray
    ) -> Marks:
        by_class = self._nms_by_class(places, scores, self.params["score_threshold"])
        each = sorted(
            (float(scores[row, kind]), row, kind) for kind, remaining in by_class for row in remaining.tolist()
        )
        mask = np.zeros((size[1], size[0]), np.uint8)
        for _score, row, kind in each:
            logits = np.tensordot(shares[row], prototypes, 1).astype(np.float32)
            covered = np.asarray(Image.fromarray(logits).resize(size, Image.Resampling.BILINEAR)) > 0
            x0, y0, x1, y1 = (max(round(float(side)), 0) for side in places[row])
            mask[y0:y1, x0:x1][covered[y0:y1, x0:x1]] = kind + 1
        rows, kinds = [row for _score, row, _kind in each], [kind for _score, _row, kind in each]
        return replace(boxed(self.names, places[rows], np.array(kinds, int), scores[rows, kinds]), mask=mask)

    # Giving back --------------------------------------------------------------------------------------------

    def answering(self, model: nn.Module) -> nn.Module:
        return yolact.AnsweringMasks(model, self.places).eval()  # type: ignore[arg-type]  # made above


def _classes(numbers: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Classes from 1 [H, W] of what each pixel shows, from the numbers of the objects there and the class of each."""
    table = np.zeros(256, np.uint8)
    drawn = kinds[: masks.MAX_OBJECTS]
    table[1 : len(drawn) + 1] = drawn + 1
    table[masks.IGNORED] = masks.IGNORED
    return np.asarray(table[numbers])


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    params = CARD.read(run.params())
    ranks = join()
    try:
        return Trainer(Instances(run, params, ranks), run, params, ranks).train()
    finally:
        ranks.leave()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
