"""The keypoint finder: where the named points of an object are. Start with `python -m presets.keypoints`.

It looks at one object at a time, cut out by its box (or at the whole picture), and answers a map for each point.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import crops, data, export, lanes, lite0, phases, pose, segmenter, shown, skeletons
from .events import with_events
from .keypoints_card import CARD
from .marks import Marks
from .ranks import Ranks, join
from .run import Run, log_line, refusals_without_traceback
from .trainer import Trainer

SMALLEST, LARGEST = 96, 192  # sides of the input where nobody chose one
FILLS = 0.25  # of its picture: a lone object that is so large needs no box
PRESENCE, NAMING = 0.2, 0.2  # weights of parts of the loss


class Keypoints(shown.Shown):
    """The task the trainer works on. Its rows are objects."""

    heads: tuple[str, ...] = ("what.",)
    metric = "val/pck05"
    fitting = "letterbox"

    def __init__(self, run: Run, params: dict[str, Any], ranks: Ranks) -> None:
        self.facts: dict[str, Any] = {}
        self.params, self.device = params, ranks.device
        self.version = data.read(run.dataset_dir)
        self.skeletons, self.objects = skeletons.read(self.version, params["pairs"])
        images = sorted({instance.row for instance in self.objects})
        learn, score, scored = data.split(self.version, images, params)
        self.whole = self._whole_pictures()
        if self.whole:
            self.objects = self._largest()
        self.learn, self.score = self._objects_of(learn), self._objects_of(score)
        self.rows, self.rows_scored = len(self.learn), 0.4 * len(self.score)
        self.width, self.height = self._size()
        self.margin = 0.0 if self.whole else params["margin"]
        windows = [
            (instance.row, crops.around(self._seen_box(instance), self.width, self.height, self.margin))
            for instance in self.objects
        ]
        with phases.packing(run, params, ranks):
            self.patches = crops.open_or_make(
                self.version, windows, run.cache_dir, width=self.width, height=self.height
            )
        self.names = [f"{self._class(s)}/{name}" for s, k in enumerate(self.skeletons) for name in k.names]
        self.points, self.known = self._targets()
        self.kinds = torch.tensor([instance.kind for instance in self.objects])
        self.own, self.turned = self._tables()
        self.mirrors = torch.tensor([bool(skeleton.mirrored) for skeleton in self.skeletons])
        self.model = self._build()
        if ranks.leads:
            self._log_summary(scored)

    def _log_summary(self, scored: str) -> None:
        what = "whole pictures" if self.whole else "boxes"
        counts = f"{self.rows} objects to learn from, {len(self.score)} to score on ({scored})"
        log_line(f"{counts}, {len(self.names)} points, {what} at {self.width}×{self.height}")
        for index, skeleton in enumerate(self.skeletons):
            if skeleton.names and not skeleton.mirrored and (self.params["flip"] or self.params["vertical_flip"]):
                log_line(f"{self._class(index)} has no points named left and right: its objects are not mirrored")

    def _class(self, index: int) -> str:
        return str(self.version.classes[index]["name"])

    def _objects_of(self, rows: list[int]) -> list[int]:
        """Return the indices of the objects on these images."""
        wanted = set(rows)
        return [number for number, instance in enumerate(self.objects) if instance.row in wanted]

    def _whole_pictures(self) -> bool:
        if self.params["crop"] != "auto":
            return bool(self.params["crop"] == "picture")
        if max(Counter(instance.row for instance in self.objects).values()) > 1:
            return False
        shares = [
            math.prod(_sides(instance.box))
            / (self.version.images[instance.row].width * self.version.images[instance.row].height)
            for instance in self.objects
        ]
        return median(shares) >= FILLS

    def _largest(self) -> list[skeletons.Object]:
        """Return the largest object of each image: a whole image has one prediction."""
        by_row: dict[int, skeletons.Object] = {}
        for instance in sorted(self.objects, key=lambda instance: math.prod(_sides(instance.box))):
            by_row[instance.row] = instance
        return [by_row[row] for row in sorted(by_row)]

    def _seen_box(self, instance: skeletons.Object) -> crops.Window:
        image = self.version.images[instance.row]
        return (0.0, 0.0, float(image.width), float(image.height)) if self.whole else instance.box

    def _size(self) -> tuple[int, int]:
        """Sides of the input: as large as objects usually are, in the shape they usually have."""
        sides = np.array([_sides(self._seen_box(self.objects[number])) for number in self.learn])
        shape = float(np.clip(np.median(sides[:, 0] / sides[:, 1]), 0.5, 2))
        side = min(max(float(np.median(sides.max(1))) * (1 + 2 * self.params["margin"]), SMALLEST), LARGEST)
        width, height = self.params["width"], self.params["height"]
        if not (width or height):
            width, height = (side, side / shape) if shape >= 1 else (side * shape, side)
        return _thirty_twos(width or height * shape), _thirty_twos(height or width / shape)

    def _targets(self) -> tuple[Tensor, Tensor]:
        """Return points [O, K, 2] of all objects, from the middle of their patches, and which are labeled [O, K]."""
        points = np.zeros((len(self.objects), len(self.names), 2), np.float32)
        labeled = np.zeros(points.shape[:2], bool)
        for number, instance in enumerate(self.objects):
            places = self.skeletons[instance.kind].places
            points[number, places] = self.patches.centred(number, instance.points[:, :2])
            labeled[number, places] = instance.points[:, 2] > 0
        return torch.from_numpy(points), torch.from_numpy(labeled)

    def _tables(self) -> tuple[Tensor, Tensor]:
        """Return which points belong to each class [C, K], and which point each becomes in a mirror image [C, K]."""
        own = torch.zeros(len(self.skeletons), len(self.names), dtype=torch.bool)
        turned = torch.arange(len(self.names)).repeat(len(self.skeletons), 1)
        for kind, skeleton in enumerate(self.skeletons):
            own[kind, skeleton.places] = True
            if skeleton.mirrored:
                turned[kind, skeleton.places] = skeleton.first + torch.tensor(skeleton.mirrored)
        return own, turned

    def _build(self) -> nn.Module:
        torch.manual_seed(self.params["seed"])
        weights = lite0.pretrained_weights() if self.params["architecture"] == "lite0" else None
        self.pretrained = weights is not None
        frozen = self.params["frozen_blocks"] if weights else 0
        backbone = lite0.Lite0((4, 8, 16, 32), frozen_blocks=frozen, frozen_norms=self.pretrained)
        if weights:
            lite0.load_pretrained(backbone, weights)
        outputs = pose.channels(len(self.names), len(self.skeletons))
        return segmenter.Segmenter(backbone, outputs, width=self.params["head_width"])

    # Learning -----------------------------------------------------------------------------------------------

    def optimizer(self) -> torch.optim.Optimizer:
        """AdamW; pretrained layers learn slower than the fresh ones."""
        return lite0.optimizer(self.model, self.params, pretrained=self.pretrained)

    def image_of(self, row: int) -> int:
        return self.objects[row].row

    def load(self, rows: list[int]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Patches [n, H, W, 3] uint8, points [n, K, 2], which are known [n, K], classes [n]."""
        chosen = [self.learn[row] for row in rows]
        pixels = torch.from_numpy(self.patches.pixels(chosen))
        return pixels, self.points[chosen], self.known[chosen], self.kinds[chosen]

    def draw(self, generator: torch.Generator, count: int) -> dict[str, Tensor]:
        """How each object is mirrored, turned, scaled, moved and lit."""
        return crops.draw(self.params, generator, count)

    def loss(self, model: nn.Module, batch: Any, draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """The losses of the maps of labeled points, of their presence, and of the class."""
        pixels, points, labeled, kinds = (part.to(self.device, non_blocking=True) for part in batch)
        turn, moved, labeled = self._turned(points, labeled, kinds, draws)
        bump, offset, there, named = pose.losses(
            model(turn.images(pixels)), moved, labeled, self.own.to(self.device)[kinds], kinds
        )
        return {"map_loss": bump, "point_loss": offset, "presence_loss": PRESENCE * there, "class_loss": NAMING * named}

    def _turned(
        self, points: Tensor, labeled: Tensor, kinds: Tensor, draws: dict[str, Tensor]
    ) -> tuple[crops.Turn, Tensor, Tensor]:
        """Return the transform of each object, its transformed points [n, K, 2], and which are labeled and visible.

        In a mirror image left and right points change places.
        """
        turn = crops.Turn.from_draws(draws, (self.width, self.height), self.mirrors.to(self.device)[kinds])
        turned = torch.where(
            turn.mirrored[:, None], self.turned.to(self.device)[kinds], torch.arange(len(self.names)).to(self.device)
        )
        moved = turn.points(points).gather(1, turned[..., None].expand(-1, -1, 2))
        inside = (moved >= 0).all(2) & (moved < moved.new_tensor([self.width, self.height])).all(2)
        return turn, moved, labeled.gather(1, turned) & inside

    # Scoring ------------------------------------------------------------------------------------------------

    def images(self, numbers: list[int]) -> Tensor:
        """Normalised images [n, 3, H, W] of objects as the finished model sees them."""
        return lite0.normal(self.patches.middle(numbers), self.device)

    @torch.inference_mode()
    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """Return the distances of predicted points from the ground truth, in the images' own pixels."""
        answering = self._answering(model)
        mine = rows[ranks.rank :: ranks.world]
        on_cpu = self.device.type == "cpu"
        at_once = 8 if on_cpu else 64

        def judged(start: int) -> list[tuple[int, list[float], bool]]:
            some = mine[start : start + at_once]
            with torch.inference_mode():
                points, classes = (answer.float().cpu().numpy() for answer in answering(self.images(some)))
            phases.advance(len(some))
            return [
                (number, self._distances(number, own), int(likely.argmax()) == self.objects[number].kind)
                for number, own, likely in zip(some, points, classes, strict=True)
            ]

        starts = range(0, len(mine), at_once)
        per_batch = lanes.for_scoring().map(judged, starts) if on_cpu else [judged(start) for start in starts]
        return self._figures(ranks.gather([score for batch in per_batch for score in batch]))

    def _distances(self, number: int, answered: np.ndarray) -> list[float]:
        """Return the distance in pixels from each labeled point of an object to its prediction."""
        instance = self.objects[number]
        places = self.patches.in_image(number, answered[self.skeletons[instance.kind].places, :2])
        visible = instance.points[:, 2] > 0
        return [float(d) for d in np.hypot(*(places - instance.points[:, :2])[visible].T)]

    def _figures(self, judged: list[tuple[int, list[float], bool]]) -> dict[str, float]:
        """NME by √(width · height) of the box (Bulat & Tzimiropoulos 2017); PCK by its longer side (Yang & Ramanan)."""
        errors: dict[int, list[float]] = {}
        near: list[np.ndarray] = []
        for number, distances, _right in judged:
            wide, high = _sides(self.objects[number].box)
            errors.setdefault(self.objects[number].kind, []).append(float(np.mean(distances)) / math.sqrt(wide * high))
            near.append(np.array(distances) / max(wide, high))
        shares = np.concatenate(near)
        metrics = {
            "val/pck05": float((shares <= 0.05).mean()),
            "val/pck10": float((shares <= 0.1).mean()),
            "val/nme": float(np.mean([error for own in errors.values() for error in own])),
            "val/class_accuracy": float(np.mean([right for _number, _distances, right in judged])),
        }
        return metrics | {f"val/nme/{self._class(kind)}": float(np.mean(own)) for kind, own in sorted(errors.items())}

    # For people to see --------------------------------------------------------------------------------------

    def counts(self) -> tuple[str, dict[str, int]]:
        counts = Counter(self.objects[number].kind for number in self.learn)
        return "objects", {self._class(index): counts[index] for index in range(len(self.skeletons))}

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        _pixels, points, labeled, kinds = (part.to(self.device) for part in batch)
        _seen, moved, labeled = self._turned(points, labeled, kinds, draws)
        return self._marked(moved, labeled, kinds)

    def truths(self, rows: list[int]) -> list[Marks]:
        places = self.points[rows] + torch.tensor([self.width, self.height]) / 2
        return self._marked(places, self.known[rows], self.kinds[rows])

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        points, classes = (answer.float().cpu() for answer in self._answering(model)(images))
        kinds = classes.argmax(1)
        return self._marked(points[..., :2], self.own[kinds], kinds)

    def _marked(self, points: Tensor, shown_points: Tensor, kinds: Tensor) -> list[Marks]:
        each = zip(points.cpu(), shown_points.cpu(), kinds.tolist(), strict=True)
        return [Marks(caption=self._class(kind), points=own[visible].tolist()) for own, visible, kind in each]

    # Giving back --------------------------------------------------------------------------------------------

    def _answering(self, model: nn.Module) -> nn.Module:
        return pose.Answering(model, len(self.names)).eval()  # type: ignore[arg-type]  # a model made above

    def export(self, model: nn.Module, folder: Path, figures: dict[str, float]) -> None:
        """Write the finished model; its classes hold the names of their points."""
        classes = [
            {
                "id": int(entry["id"]),
                "name": str(entry["name"]),
                "keypoints": skeleton.names,
                "skeleton": skeleton.links,
            }
            for entry, skeleton in zip(self.version.classes, self.skeletons, strict=True)
        ]
        metadata = {
            "task": CARD.task,
            "architecture": self.params["architecture"],
            "preset": CARD.name,
            "classes": classes,
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": 3, "dtype": "float32",
                "layout": "NCHW", "mean": [lite0.MEAN] * 3, "std": [lite0.STD] * 3, "resize": "letterbox",
                "scope": "picture" if self.whole else "object", "margin": self.margin,
            },
            "output": {"points": "points", "classes": "kinds"},
            "metrics": figures,
            "params": self.params,
        }  # fmt: skip
        samples = self.images(self.score[:8])
        export.write(self._answering(model), folder, outputs=("points", "kinds"), samples=samples, metadata=metadata)


def _sides(box: crops.Window) -> tuple[float, float]:
    return max(box[2] - box[0], 1.0), max(box[3] - box[1], 1.0)


def _thirty_twos(pixels: float) -> int:
    return max(32, round(pixels / 32) * 32)


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    params = CARD.read(run.params())
    ranks = join()
    try:
        return Trainer(Keypoints(run, params, ranks), run, params, ranks).train()
    finally:
        ranks.leave()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
