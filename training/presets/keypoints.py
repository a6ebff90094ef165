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
from .run import Run, refusals_without_traceback, say
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
        images = sorted({known.row for known in self.objects})
        learn, score, scored = data.split(self.version, images, params)
        self.whole = self._whole_pictures()
        if self.whole:
            self.objects = self._largest()
        self.learn, self.score = self._objects_of(learn), self._objects_of(score)
        self.rows, self.rows_scored = len(self.learn), 0.4 * len(self.score)
        self.width, self.height = self._size()
        self.margin = 0.0 if self.whole else params["margin"]
        windows = [
            (known.row, crops.around(self._seen_box(known), self.width, self.height, self.margin))
            for known in self.objects
        ]
        with phases.packing(run, params, ranks):
            self.patches = crops.open_or_make(
                self.version, windows, run.cache_dir, width=self.width, height=self.height
            )
        self.names = [f"{self._class(s)}/{name}" for s, k in enumerate(self.skeletons) for name in k.names]
        self.points, self.known = self._targets()
        self.kinds = torch.tensor([known.kind for known in self.objects])
        self.own, self.turned = self._tables()
        self.mirrors = torch.tensor([bool(one.mirrored) for one in self.skeletons])
        self.model = self._build()
        if ranks.leads:
            self._tell(scored)

    def _tell(self, scored: str) -> None:
        what = "whole pictures" if self.whole else "boxes"
        counts = f"{self.rows} objects to learn from, {len(self.score)} to score on ({scored})"
        say(f"{counts}, {len(self.names)} points, {what} at {self.width}×{self.height}")
        for place, one in enumerate(self.skeletons):
            if one.names and not one.mirrored and (self.params["flip"] or self.params["vertical_flip"]):
                say(f"{self._class(place)} has no points named left and right: its objects are not mirrored")

    def _class(self, place: int) -> str:
        return str(self.version.classes[place]["name"])

    def _objects_of(self, rows: list[int]) -> list[int]:
        """Places of the objects on these images."""
        wanted = set(rows)
        return [number for number, known in enumerate(self.objects) if known.row in wanted]

    def _whole_pictures(self) -> bool:
        if self.params["crop"] != "auto":
            return bool(self.params["crop"] == "picture")
        if max(Counter(known.row for known in self.objects).values()) > 1:
            return False
        shares = [
            math.prod(_sides(known.box))
            / (self.version.images[known.row].width * self.version.images[known.row].height)
            for known in self.objects
        ]
        return median(shares) >= FILLS

    def _largest(self) -> list[skeletons.Object]:
        """The largest object of each picture: a whole picture has one answer."""
        by_row: dict[int, skeletons.Object] = {}
        for known in sorted(self.objects, key=lambda known: math.prod(_sides(known.box))):
            by_row[known.row] = known
        return [by_row[row] for row in sorted(by_row)]

    def _seen_box(self, known: skeletons.Object) -> crops.Window:
        image = self.version.images[known.row]
        return (0.0, 0.0, float(image.width), float(image.height)) if self.whole else known.box

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
        """Points [O, K, 2] of all objects, from the middle of their patches, and which of them are known [O, K]."""
        points = np.zeros((len(self.objects), len(self.names), 2), np.float32)
        known = np.zeros(points.shape[:2], bool)
        for number, found in enumerate(self.objects):
            places = self.skeletons[found.kind].places
            points[number, places] = self.patches.centred(number, found.points[:, :2])
            known[number, places] = found.points[:, 2] > 0
        return torch.from_numpy(points), torch.from_numpy(known)

    def _tables(self) -> tuple[Tensor, Tensor]:
        """Which points belong to each class [C, K], and which one each point is in a mirror image [C, K]."""
        own = torch.zeros(len(self.skeletons), len(self.names), dtype=torch.bool)
        turned = torch.arange(len(self.names)).repeat(len(self.skeletons), 1)
        for kind, one in enumerate(self.skeletons):
            own[kind, one.places] = True
            if one.mirrored:
                turned[kind, one.places] = one.first + torch.tensor(one.mirrored)
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
        """What is wrong with the maps of known points, with their presence, and with the class."""
        pixels, points, known, kinds = (part.to(self.device, non_blocking=True) for part in batch)
        seen, moved, known = self._turned(points, known, kinds, draws)
        bump, off, there, named = pose.losses(
            model(seen.images(pixels)), moved, known, self.own.to(self.device)[kinds], kinds
        )
        return {"map_loss": bump, "point_loss": off, "presence_loss": PRESENCE * there, "class_loss": NAMING * named}

    def _turned(
        self, points: Tensor, known: Tensor, kinds: Tensor, draws: dict[str, Tensor]
    ) -> tuple[crops.Turn, Tensor, Tensor]:
        """How each object is seen, where its points are then [n, K, 2], and which of them are known and on the image.

        In a mirror image left and right points change places.
        """
        seen = crops.Turn.of(draws, (self.width, self.height), self.mirrors.to(self.device)[kinds])
        turned = torch.where(
            seen.mirrored[:, None], self.turned.to(self.device)[kinds], torch.arange(len(self.names)).to(self.device)
        )
        moved = seen.points(points).gather(1, turned[..., None].expand(-1, -1, 2))
        inside = (moved >= 0).all(2) & (moved < moved.new_tensor([self.width, self.height])).all(2)
        return seen, moved, known.gather(1, turned) & inside

    # Scoring ------------------------------------------------------------------------------------------------

    def images(self, numbers: list[int]) -> Tensor:
        """Normalised images [n, 3, H, W] of objects as the finished model sees them."""
        return lite0.normal(self.patches.middle(numbers), self.device)

    @torch.inference_mode()
    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """How far points are from where they should be, in the images' own pixels."""
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
        return self._figures(ranks.gather([one for batch in per_batch for one in batch]))

    def _distances(self, number: int, answered: np.ndarray) -> list[float]:
        """Pixels from each known point of an object to what was answered for it."""
        known = self.objects[number]
        places = self.patches.in_image(number, answered[self.skeletons[known.kind].places, :2])
        seen = known.points[:, 2] > 0
        return [float(d) for d in np.hypot(*(places - known.points[:, :2])[seen].T)]

    def _figures(self, judged: list[tuple[int, list[float], bool]]) -> dict[str, float]:
        """NME by √(width · height) of the box (Bulat & Tzimiropoulos 2017); PCK by its longer side (Yang & Ramanan)."""
        errors: dict[int, list[float]] = {}
        near: list[np.ndarray] = []
        for number, distances, _right in judged:
            wide, high = _sides(self.objects[number].box)
            errors.setdefault(self.objects[number].kind, []).append(float(np.mean(distances)) / math.sqrt(wide * high))
            near.append(np.array(distances) / max(wide, high))
        shares = np.concatenate(near)
        found = {
            "val/pck05": float((shares <= 0.05).mean()),
            "val/pck10": float((shares <= 0.1).mean()),
            "val/nme": float(np.mean([error for own in errors.values() for error in own])),
            "val/class_accuracy": float(np.mean([right for _number, _distances, right in judged])),
        }
        return found | {f"val/nme/{self._class(kind)}": float(np.mean(own)) for kind, own in sorted(errors.items())}

    # For people to see --------------------------------------------------------------------------------------

    def counts(self) -> tuple[str, dict[str, int]]:
        counts = Counter(self.objects[number].kind for number in self.learn)
        return "objects", {self._class(place): counts[place] for place in range(len(self.skeletons))}

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        _pixels, points, known, kinds = (part.to(self.device) for part in batch)
        _seen, moved, known = self._turned(points, known, kinds, draws)
        return self._marked(moved, known, kinds)

    def truths(self, rows: list[int]) -> list[Marks]:
        places = self.points[rows] + torch.tensor([self.width, self.height]) / 2
        return self._marked(places, self.known[rows], self.kinds[rows])

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        points, classes = (answer.float().cpu() for answer in self._answering(model)(images))
        kinds = classes.argmax(1)
        return self._marked(points[..., :2], self.own[kinds], kinds)

    def _marked(self, points: Tensor, shown_points: Tensor, kinds: Tensor) -> list[Marks]:
        each = zip(points.cpu(), shown_points.cpu(), kinds.tolist(), strict=True)
        return [Marks(word=self._class(kind), points=own[seen].tolist()) for own, seen, kind in each]

    # Giving back --------------------------------------------------------------------------------------------

    def _answering(self, model: nn.Module) -> nn.Module:
        return pose.Answering(model, len(self.names)).eval()  # type: ignore[arg-type]  # a model made above

    def export(self, model: nn.Module, folder: Path, figures: dict[str, float]) -> None:
        """Write the finished model; its classes say what their points are called."""
        classes = [
            {"id": int(entry["id"]), "name": str(entry["name"]), "keypoints": one.names, "skeleton": one.links}
            for entry, one in zip(self.version.classes, self.skeletons, strict=True)
        ]
        about = {
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
        export.write(self._answering(model), folder, outputs=("points", "kinds"), samples=samples, about=about)


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
