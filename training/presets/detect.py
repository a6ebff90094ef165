"""The object detector: a pretrained backbone, a small pyramid, one head for all sizes of objects, no anchors.

Each cell of each feature map says how likely each class has an object around it, how far its four sides are,
and how well those sides fit. Start with `python -m presets.detect`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import boxes as geometry
from . import checkpoints, coco, data, export, image_cache, lanes, lite0, mosaic, phases, shown, tiles, view, warp
from .detect_card import CARD
from .detector import Answering, Detector, focal
from .events import with_events
from .marks import Marks, boxed
from .ranks import Ranks, join
from .run import Refused, Run, log_line, refusals_without_traceback
from .tiling.boxes import Parts
from .tiling.masks import Patch
from .trainer import Trainer

CANDIDATES = 300  # per class and image, before suppression
MAX_BOXES, MAX_BOXES_OF_TILES = 300, 2000  # boxes that are answered for an image
LOWEST_SCORE = 0.02  # of what is scored
FORWARD = 0.6  # of learning from an image is looking at it
NAMING = 0.5  # weight of telling classes apart where there is an object


class Detection(shown.Shown):
    """The task the trainer works on."""

    card = CARD
    heads: tuple[str, ...] = ("what.",)
    metric = "val/ap"
    outputs: tuple[str, ...] = ("boxes", "scores")

    def __init__(self, run: Run, params: dict[str, Any], ranks: Ranks) -> None:
        self.params, self.device = params, ranks.device
        self.version = data.read(run.dataset_dir)
        rows = data.annotated_rows(self.version)
        self.names = [str(entry["name"]) for entry in self.version.classes]
        self.truth = self.read_truth(rows)
        self.learn, self.score, scored = data.split(self.version, rows, params)
        boxes = [self.truth[row][0] for row in self.learn]
        self.view = view.for_training(run, self.version, self.learn, boxes, params, cores=ranks.cores())
        self.frozen_filters = self._frozen_filters(run)
        self.facts = {"view": dataclasses.asdict(self.view), "frozen_filters": self.frozen_filters}
        self.width, self.height = self.view.input_size
        self.strides = self.view.strides
        self.tiles: tiles.Tiles | None = None
        with phases.packing(run, params, ranks):
            if self.view.tile:
                every = [boxes for boxes, _ in self.truth]
                self.tiles = tiles.Tiles(self.version, every, self.view.tile, params["tile_overlap"], run.cache_dir)
            else:
                self.image_cache = image_cache.open_or_make(
                    self.version, run.cache_dir, width=self.width, height=self.height, channels=3,
                    resize=self.view.resize,
                )  # fmt: skip
        self.regions = self.tiles.regions(self.learn) if self.tiles else [tiles.Region(row) for row in self.learn]
        self.rows, looks = len(self.regions), self.tiles.count(self.score) if self.tiles else len(self.score)
        self.rows_scored = FORWARD * looks * self.width * self.height / math.prod(self.view.window)
        self.fitted = [
            self.view.to_input(image, boxes) for image, (boxes, _) in zip(self.version.images, self.truth, strict=True)
        ]
        classes = np.concatenate([self.truth[row][1] for row in self.learn])
        self.class_weights = geometry.class_weights(classes, len(self.version.classes)).to(self.device)
        self.model = self._build()
        self.places, _ = self._points(self.width, self.height)
        self.mosaics: float = params.get("mosaic", 0.0)
        self.window_points: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        if ranks.leads:
            counts = f"{len(self.learn)} images to learn from, {len(self.score)} to score on ({scored})"
            log_line(f"{counts}, {self.width}×{self.height}")
            for line in self.view.lines():
                log_line(line)

    def _frozen_filters(self, run: Run) -> bool:
        """Return the chosen value, or that of the training being resumed, whose optimizer fixes which filters learn."""
        checkpoint = checkpoints.newest(run.resume_from, run.checkpoint_dir)
        if checkpoint is None:
            return bool(self.params["frozen_filters"])
        return bool((checkpoints.meta(checkpoint) or {}).get("frozen_filters"))

    def read_truth(self, rows: list[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Boxes and classes of each image's objects; refuse a version where the usable `rows` have none."""
        truth = data.boxes(self.version)
        if not any(len(truth[row][0]) for row in rows):
            raise Refused(f"{self.version.name or 'The dataset'} has no boxes yet. Annotate some images, then train.")
        return truth

    def _points(self, width: int, height: int) -> tuple[Tensor, Tensor]:
        """Centres of the cells of all maps of an image of this size, and their strides."""
        places, steps = geometry.points([(-(-height // s), -(-width // s)) for s in self.strides], self.strides)
        return places.to(self.device), steps.to(self.device)

    def _build(self) -> nn.Module:
        torch.manual_seed(self.params["seed"])
        weights = lite0.pretrained_weights() if self.params["architecture"] == "lite0" else None
        self.pretrained = weights is not None
        sides = np.concatenate([self.fitted[row][:, 2:] - self.fitted[row][:, :2] for row in self.learn])
        usual = float(np.median(sides)) / 2 if len(sides) else 8.0
        backbone = self.backbone(weights)
        if weights:
            lite0.load_pretrained(backbone, weights)
        return self.network(backbone, max(usual, 1.0))

    def backbone(self, weights: dict[str, Tensor] | None, *more: int) -> lite0.Lite0:
        """The backbone with the detector's maps, and those at the finer strides `more` before them."""
        frozen = self.params["frozen_blocks"] if weights else 0
        return lite0.Lite0(
            (*more, *self.strides),
            frozen_blocks=frozen,
            frozen_norms=self.pretrained,
            frozen_filters=self.pretrained and self.frozen_filters,
        )

    def network(self, backbone: lite0.Lite0, usual: float) -> nn.Module:
        """The network; `usual` is how far an object's sides are from its centre at first, in pixels."""
        params = self.params
        classes, width, depth = len(self.names), params["head_width"], params["head_depth"]
        return Detector(backbone, classes, width=width, depth=depth, usual=usual)

    def _to_image(self, row: int, input_boxes: np.ndarray) -> np.ndarray:
        """Boxes of input pixels in an image's own pixels, cut at its edge."""
        image = self.version.images[row]
        if self.tiles:
            return np.asarray(input_boxes.clip(0, [image.width, image.height] * 2))
        return self.view.to_image(image, input_boxes)

    # Learning -----------------------------------------------------------------------------------------------

    def optimizer(self) -> torch.optim.Optimizer:
        """AdamW; pretrained layers learn slower than the fresh ones."""
        return lite0.optimizer(self.model, self.params, pretrained=self.pretrained)

    def load(self, rows: list[int]) -> tuple[Tensor, ...]:
        """Pixels [n, H, W, 3] uint8, boxes [n, K, 4], classes [n, K] and which of the K are real [n, K].

        For mosaics the same again of the three images before each.
        """
        chosen = [self.regions[row] for row in rows]
        if self.tiles:
            pixels = np.stack([self.tiles.around(region) for region in chosen])
        else:
            pixels = self.image_cache.rows([region.row for region in chosen])
        batch = torch.from_numpy(pixels), *geometry.padded([self._shown(region) for region in chosen])
        others = range(1, mosaic.EXTRA + 1) if self.mosaics else ()
        return *batch, *(part.roll(number, 0) for number in others for part in batch)

    def _shown(self, region: tiles.Region) -> tuple[np.ndarray, np.ndarray]:
        """Boxes and classes of the objects in a region of an image, in its pixels."""
        visible = self.shown_in(region)
        return region.inside(self.fitted[region.row])[visible], self.truth[region.row][1][visible]

    def shown_in(self, region: tiles.Region) -> np.ndarray:
        """Return the indices of the image's objects of which the region shows enough."""
        boxes = region.inside(self.fitted[region.row])
        left = boxes.clip(0, [self.view.width, self.view.height] * 2)
        visible = (left[:, 2:] - left[:, :2]).prod(1) > warp.VISIBLE * (boxes[:, 2:] - boxes[:, :2]).prod(1)
        return np.flatnonzero(visible) if self.tiles else np.arange(len(boxes))

    def draw(self, generator: torch.Generator, count: int) -> dict[str, Tensor]:
        """How each image is mirrored, scaled, moved and lit, and which object a window looks at."""
        draws = warp.draw(self.params, generator, count)
        if not self.mosaics:
            return draws
        others = [warp.draw(self.params, generator, count) | {"size": draws["size"]} for _ in range(mosaic.EXTRA)]
        return mosaic.draw(self.mosaics, generator, count) | mosaic.together([draws, *others])

    def loss(self, model: nn.Module, batch: Any, draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """Focal loss for the class, GIoU for the box, cross-entropy for the fit.

        Focal loss tells objects from the ground at once and classes from each other late; where there is an object,
        cross-entropy between the classes does that within few steps.
        """
        images, boxes, classes, valid = self._varied(batch, draws)
        answers = [answer.float() for answer in model(images)]
        width, height = images.shape[3], images.shape[2]
        return self.detection_losses(answers, boxes, classes, valid, ranks, (width, height))[0]

    def _varied(self, batch: Any, draws: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Normalised images [n, 3, h, w] as they are learned from, boxes in their pixels, classes, which are real."""
        parts = [part.to(self.device, non_blocking=True) for part in batch]
        if not self.mosaics:
            return self._transform(parts[:4], draws)
        each = [
            self._transform(parts[4 * number : 4 * number + 4], mosaic.of_part(draws, number))
            for number in range(mosaic.EXTRA + 1)
        ]
        images, boxes, classes, valid = mosaic.made(each, draws, visible=warp.VISIBLE)
        return images.contiguous(memory_format=torch.channels_last), boxes, classes, valid

    def _transform(self, part: list[Tensor], draws: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        pixels, boxes, classes, valid = part
        transform = warp.Warp.from_draws(draws, self.view, boxes, valid)
        boxes, valid = transform.boxes(boxes, valid)
        return transform.images(pixels), boxes, classes, valid

    def detection_losses(
        self,
        answers: list[Tensor],
        boxes: Tensor,
        classes: Tensor,
        valid: Tensor,
        ranks: Ranks,
        window: tuple[int, int],
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The losses of classes, boxes and fits, and which box each point answers for [N, P], -1 where none.

        Args:
            window: width and height of the images that were looked at.
        """
        logits, distances, fits = answers
        if window not in self.window_points:
            self.window_points[window] = self._points(*window)
        places, steps = self.window_points[window]
        chosen, sides = geometry.assign(
            places,
            steps,
            boxes,
            valid,
            strides=self.strides,
            radius=self.params["center_radius"],
        )
        positive = chosen >= 0
        wanted = torch.zeros_like(logits)
        image, point = positive.nonzero(as_tuple=True)
        wanted[image, point, classes[image, chosen[image, point]]] = 1
        count = ranks.mean(positive.sum().float()).clamp(min=1)
        scale = steps[point, None]
        iou, giou = geometry.overlap(distances[positive] / scale, sides[positive] / scale)
        named = classes[image, chosen[image, point]]
        weights = self.class_weights[named]
        fit = (
            weights * F.binary_cross_entropy_with_logits(fits[positive], iou.detach().clamp(0, 1), reduction="none")
        ).sum()
        wrong = focal(logits, wanted, self.class_weights)
        wrong = wrong + NAMING * F.cross_entropy(logits[positive], named, weight=self.class_weights, reduction="sum")
        return {"class": wrong / count, "box": (weights * (1 - giou)).sum() / count, "fit": fit / count}, chosen

    # Scoring ------------------------------------------------------------------------------------------------

    def images(self, rows: list[int]) -> Tensor:
        """Normalised images [n, 3, H, W] as the finished model sees them; of large images the busiest tile."""
        if self.tiles:
            pixels = np.concatenate([self.tiles.pixels(row, [self.tiles.busiest(row)]) for row in rows])
            return lite0.normal(pixels, self.device)
        return lite0.normal(self.image_cache.rows(rows), self.device)

    @torch.inference_mode()
    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """Return COCO's AP over these images, in their own pixels."""
        answering, mine = self.answering(model), rows[ranks.rank :: ranks.world]
        at_once = 2 if (on_cpu := self.device.type == "cpu") else 16

        def detect_in_tiles(row: int) -> list[dict[str, Any]]:
            image_tiles: Any = self.tiles
            parts = Parts(image_tiles.sizes[row], self.view.input_size)
            for places, pixels in image_tiles.looks(row, at_once):
                with torch.inference_mode():
                    answers = [answer.float().cpu().numpy() for answer in answering(lite0.normal(pixels, self.device))]
                for corner, *own in zip(places, *answers, strict=True):
                    self.add_tile(parts, corner, own)
            phases.advance()
            return self.detections(row, parts.joined(len(self.names)))

        def detect_in_images(start: int) -> list[dict[str, Any]]:
            some = mine[start : start + at_once]
            with torch.inference_mode():
                answers = [answer.float().cpu().numpy() for answer in answering(self.images(some))]
            phases.advance(len(some))
            return [item for row, *own in zip(some, *answers, strict=True) for item in self.detections(row, own)]

        look, starts = (detect_in_tiles, mine) if self.tiles else (detect_in_images, range(0, len(mine), at_once))
        per_batch = lanes.for_scoring().map(look, starts) if on_cpu else list(map(look, starts))
        return self.figures(ranks.gather([detection for batch in per_batch for detection in batch]), rows)

    def _nms_by_class(self, places: np.ndarray, scores: np.ndarray, lowest: float) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the boxes of one image that remain after suppression, class by class: class index, rows of `places`."""
        for index in range(scores.shape[1]):
            likely = np.flatnonzero(scores[:, index] > lowest)
            likely = likely[np.argsort(-scores[likely, index], kind="stable")][:CANDIDATES]
            yield index, likely[geometry.nms(places[likely], scores[likely, index], iou=self.params["iou_threshold"])]

    def add_tile(self, parts: Parts, corner: tuple[int, int], answers: list[np.ndarray]) -> None:
        """Add the model's outputs for the tile of an image at `corner`, after suppression."""
        rows, kinds = self._suppress(answers[0], answers[1], LOWEST_SCORE)
        boxes, scores = answers[0][rows] + np.tile(np.array(corner, np.float32), 2), answers[1][rows, kinds]
        parts.add(corner, boxes, scores, kinds, self.masks_of_tile(corner, rows, boxes, answers[2:]))

    def masks_of_tile(
        self, corner: tuple[int, int], rows: np.ndarray, boxes: np.ndarray, answers: list[np.ndarray]
    ) -> list[Patch]:
        """Return the masks of these rows of a tile's outputs, with boxes in the image's pixels; none for a detector."""
        return []

    def _suppress(self, places: np.ndarray, scores: np.ndarray, lowest: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of `places` that remain after suppression, and the class of each."""
        by_class = list(self._nms_by_class(places, scores, lowest))
        kinds = np.concatenate([np.full(len(remaining), index) for index, remaining in by_class])
        return np.concatenate([remaining for _, remaining in by_class]), kinds

    def detections(self, row: int, answers: Sequence[Any]) -> list[dict[str, Any]]:
        """Return the boxes of one image after suppression in COCO format; category ids are class indices + 1.

        `place` is the row of `answers`, the model's outputs for this image, that a box was read from.
        """
        places, scores = answers[:2]
        detections = []
        for index, remaining in self._nms_by_class(places, scores, LOWEST_SCORE):
            for (x0, y0, x1, y1), cell in zip(self._to_image(row, places[remaining]), remaining.tolist(), strict=True):
                detection = {"image_id": row + 1, "category_id": index + 1, "score": float(scores[cell, index])}
                detections.append({**detection, "place": cell, "bbox": [float(v) for v in (x0, y0, x1 - x0, y1 - y0)]})
        return detections

    def figures(self, detections: list[dict[str, Any]], rows: list[int]) -> dict[str, float]:
        """COCO's AP, and that of each class at half overlap."""
        return coco.figures(coco.truth(self.version, self.names, self.truth, rows), detections, self.names)

    # For people to see --------------------------------------------------------------------------------------

    def counts(self) -> tuple[str, dict[str, int]]:
        classes = np.concatenate([self.truth[row][1] for row in self.learn])
        counts = np.bincount(classes, minlength=len(self.version.classes))
        return "objects", dict(zip(self.names, (int(count) for count in counts), strict=True))

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        _, boxes, classes, valid = self._varied(batch, draws)
        each = zip(boxes.cpu().numpy(), classes.cpu().numpy(), valid.cpu().numpy(), strict=True)
        return [boxed(self.names, own[real], kinds[real]) for own, kinds, real in each]

    def truths(self, rows: list[int]) -> list[Marks]:
        if self.tiles:
            parts = [tiles.Region(row, *self.tiles.busiest(row)) for row in rows]
            return [boxed(self.names, part.inside(self.fitted[part.row]), self.truth[part.row][1]) for part in parts]
        return [boxed(self.names, self.fitted[row], self.truth[row][1]) for row in rows]

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        boxes, scores = (answer.float().cpu().numpy() for answer in self.answering(model)(images)[:2])
        marks = []
        for places, of_classes in zip(boxes, scores, strict=True):
            rows, kinds = self._suppress(places, of_classes, self.params["score_threshold"])
            marks.append(boxed(self.names, places[rows], kinds, of_classes[rows, kinds]))
        return marks

    # Giving back --------------------------------------------------------------------------------------------

    def answering(self, model: nn.Module) -> nn.Module:
        return Answering(model, self.places).eval()  # type: ignore[arg-type]  # a model of this preset, made above

    def export(self, model: nn.Module, folder: Path, figures: dict[str, float]) -> None:
        params = self.params
        metadata = {
            "task": self.card.task,
            "architecture": params["architecture"],
            "preset": self.card.name,
            "classes": [{"id": int(entry["id"]), "name": str(entry["name"])} for entry in self.version.classes],
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": 3, "dtype": "float32",
                "layout": "NCHW", "mean": [lite0.MEAN] * 3, "std": [lite0.STD] * 3,
                **self.view.described(params),
            },
            "output": {name: name for name in self.outputs},
            "decode": {
                "score_threshold": params["score_threshold"],
                "iou_threshold": params["iou_threshold"],
                "max_detections": MAX_BOXES_OF_TILES if self.tiles else MAX_BOXES,
            },
            "metrics": figures,
            "params": params,
        }  # fmt: skip
        samples = self.images(self.score[:8])
        export.write(self.answering(model), folder, outputs=self.outputs, samples=samples, metadata=metadata)


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    params = CARD.read(run.params())
    ranks = join()
    try:
        return Trainer(Detection(run, params, ranks), run, params, ranks).train()
    finally:
        ranks.leave()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
