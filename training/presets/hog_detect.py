"""The detector by gradient histograms and linear SVMs. Start with `python -m presets.hog_detect`.

Every window of every level of a pyramid is an example: of a class where it lies on an object of the class, of nothing
where it lies on none. There are far too many of nothing, so the machines learn from few, search the images for windows
that they take for objects, and learn again with those (hard negatives: Dalal and Triggs 2005). It can be paused; there
is nothing worth a checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import boxes as geometry
from . import coco, data, export, image_cache, phases, pyramid, svm, view
from .events import with_events
from .hog_detect_card import CARD
from .pauses import ALONE, EXPORT_S, Ended, Pausable
from .run import COMPLETED, TERMINATED, Refused, Run, log_line, refusals_without_traceback

FITS, ENOUGH, NEAR = 0.5, 0.35, 0.3  # overlap of a window with its object: surely, at least the best one; else neither
BEST = 4  # windows of an object that are learned from
AT_RANDOM, WRONG = 10, 20  # windows of nothing that are taken from an image at first, and in each round
DOUBTED = -1.0  # margin from which on a window of nothing is wrongly found
MAX_BYTES = 2 << 30  # of the windows that are learned from
MAX_SCALE = 2.0  # images are enlarged so far for small objects
CANDIDATES = 300  # of a class on an image, before suppression
LOWEST = -3.0  # margin of what is scored


@dataclass
class Examples:
    """Windows to learn from."""

    capacity: int
    features: list[Tensor] = field(default_factory=list)  # [values] each
    signs: list[Tensor] = field(default_factory=list)  # [classes] each
    taken: set[tuple[int, int]] = field(default_factory=set)  # row and place

    def add(self, row: int, places: Tensor, windows: Tensor, signs: Tensor) -> None:
        """Add windows [n, values] of an image that are not yet included, up to the capacity."""
        for position, window, sign in zip(places.tolist(), windows, signs, strict=True):
            if (row, position) not in self.taken and len(self.features) < self.capacity:
                self.taken.add((row, position))
                self.features.append(window)
                self.signs.append(sign)


class Training:
    """One run: windows, machines, what they wrongly find, figures, the exported model."""

    def __init__(self, run: Run, params: dict[str, Any]) -> None:
        self.run, self.version = run, data.read(run.dataset_dir)
        rows = data.annotated_rows(self.version)
        self.truth = data.boxes(self.version)
        self.learn, self.score, scored = data.split(self.version, rows, params)
        own = [self.truth[row][0] for row in self.learn]
        if not sum(map(len, own)):
            name = self.version.name or "The dataset"
            raise Refused(f"{name} has no boxes to learn from. Annotate some images, then train.")
        sizes = [(self.version.images[row].width, self.version.images[row].height) for row in self.learn]
        self.view = view.choose(sizes, own, {**params, "strides": "auto", "budget_minutes": 0})
        self.width, self.height = self.view.width, self.view.height
        self.fitted = [
            self.view.to_input(image, boxes) for image, (boxes, _) in zip(self.version.images, self.truth, strict=True)
        ]
        objects = np.concatenate([self.fitted[row] for row in self.learn])
        small = float(np.quantile(np.sqrt((objects[:, 2:] - objects[:, :2]).prod(1)), 0.05))
        cell = params["cell"] or min(8, max(4, round(small / params["window"])))
        self.params = {**params, "cell": cell}
        window = pyramid.window_of(objects, cells=params["window"], cell=cell)
        scales = pyramid.scales_of(objects, window, layers=params["layers"], largest=MAX_SCALE)
        if min(self.width, self.height) * max(scales) < (max(window.wide, window.high) + 1) * cell:
            raise Refused(f"Images of {self.width}×{self.height} pixels are smaller than a window of {window.wide}×"
                          f"{window.high} cells of {cell}: choose a larger width or a smaller cell.")  # fmt: skip
        self.pyramid = pyramid.Pyramid(window, scales, bins=params["bins"], width=self.width, height=self.height).eval()
        self.channels = image_cache.channels_of(self.version)
        with phases.packing(run, {"budget_minutes": 0}, ALONE):
            self.image_cache = image_cache.open_or_make(
                self.version, run.cache_dir, width=self.width, height=self.height, channels=self.channels,
                resize=self.view.resize,
            )  # fmt: skip
        levels = ", ".join(f"{width}×{height}" for height, width in self.pyramid.sizes)
        counts = f"{len(self.learn)} images to learn from, {len(self.score)} to score on ({scored})"
        log_line(f"{counts}, {self.width}×{self.height}; "
                 f"windows of {window.wide}×{window.high} cells of {cell} at {levels}")  # fmt: skip

    # The road ---------------------------------------------------------------------------------------------

    def train(self) -> int:
        """Return the exit code."""
        self.run.listen()
        self.job = Pausable(self.run)
        try:
            model, loss, steps = self._learned()
        except Ended:
            return TERMINATED
        self.run.end_on_signal()
        with self.job.phases.during(
            phases.SCORING, step=steps, total=len(self.score), thought_s=self.job.scoring_s,
            after={phases.EXPORTING: EXPORT_S},
        ):  # fmt: skip
            detections = self._detect(model)
            slope, shift = self._likelihoods(detections)
            figures = self._figures(detections, slope, shift)
        self.run.report(steps, figures)
        log_line("  ".join(f"{name} {value:.4f}" for name, value in figures.items()))
        with self.job.phases.during(phases.EXPORTING, step=steps, thought_s=EXPORT_S, after={}):
            self._export(model.scaled(slope, shift), self.run.output_dir / "model", figures)
        self.job.completed(steps, {**figures, "train/loss": loss})
        return COMPLETED

    @torch.inference_mode()
    def _first(self, row: int, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Places, windows and signs of an image's objects and of some of its ground."""
        signs = self._signs(row)
        ground = torch.nonzero((signs == -1).all(1)).flatten()
        some = ground[torch.randperm(len(ground), generator=draw)[:AT_RANDOM]]
        places = torch.cat([torch.nonzero((signs == 1).any(1)).flatten(), some])
        return places, self.pyramid.windows(self.pyramid(self.images([row])), places), signs[places]

    def _signs(self, row: int) -> Tensor:
        """Return the sign of each window for each class [places, classes]: 1 on an object, -1 off it, 0 in between."""
        signs = -torch.ones(len(self.pyramid.boxes), len(self.version.classes))
        boxes, kinds = self.fitted[row], self.truth[row][1]
        overlap = overlaps(self.pyramid.boxes.numpy(), boxes)
        for own, kind in zip(overlap.T, kinds, strict=True):
            near = torch.from_numpy(own >= NEAR)
            signs[near, kind] = signs[near, kind].clamp(min=0)
        for own, kind in zip(overlap.T, kinds, strict=True):
            best = np.argsort(-own, kind="stable")[:BEST]
            sure = best[own[best] >= FITS]
            signs[sure if len(sure) else best[:1][own[best[:1]] >= ENOUGH], kind] = 1
        return signs

    def _learned(self) -> tuple[pyramid.HogDetector, float, int]:
        """The detector, the last loss, and how many iterations it took in all."""
        examples, steps = Examples(capacity=MAX_BYTES // (4 * self.pyramid.dims)), 0
        rounds, draw = self.params["rounds"], torch.Generator().manual_seed(self.params["seed"])
        part = 1 / (rounds + 1)
        for row_number, row in enumerate(self.learn):
            examples.add(row, *self._first(row, draw))
            self.job.between(0, {}, 0.3 * part * row_number / len(self.learn))
        self.job.looked_through(len(self.learn), len(self.score))
        self._log_unmatched_classes(examples)
        for number in range(rounds + 1):
            features, signs = torch.stack(examples.features), torch.stack(examples.signs)
            done, so_far = number * part, steps

            def report_iteration(iteration: int, loss: float, done: float = done, so_far: int = so_far) -> None:
                progress = done + part * (0.3 + 0.7 * iteration / self.params["iterations"])
                self.job.between(so_far + iteration, {"train/loss": loss}, progress)

            weights, bias, loss, took = svm.learn(
                features,
                signs,
                cost=self.params["svm_cost"],
                iterations=self.params["iterations"],
                on_iteration=report_iteration,
            )
            steps += took
            model = pyramid.HogDetector(self.pyramid, weights, bias).eval()
            if number < rounds and not self._searched(model, examples, steps, done + part):
                break
        return model, loss, steps

    def _log_unmatched_classes(self, examples: Examples) -> None:
        counts = (torch.stack(examples.signs) == 1).sum(0).tolist()
        lost = [name for name, count in zip(self._names, counts, strict=True) if not count]
        if lost:
            log_line(f"no window fits objects of {', '.join(lost)}: they will not be found. Choose more layers, or "
                     "train classes of other shapes by themselves.")  # fmt: skip

    @torch.inference_mode()
    def _searched(self, model: pyramid.HogDetector, examples: Examples, steps: int, done: float) -> int:
        """Add the false positives of the classifiers in the images; return how many windows were added."""
        before = len(examples.features)
        for number, row in enumerate(self.learn):
            levels = self.pyramid(self.images([row]))
            signs, margins = self._signs(row), model.margins(levels)[0]
            worst = margins.masked_fill(signs != -1, -torch.inf).amax(1)
            places = worst.argsort(descending=True, stable=True)[: 3 * WRONG]
            places = places[worst[places] > DOUBTED]
            fresh = [position for position in places.tolist() if (row, position) not in examples.taken][:WRONG]
            chosen = torch.tensor(fresh, dtype=torch.int64)
            examples.add(row, chosen, self.pyramid.windows(levels, chosen), signs[chosen])
            self.job.between(steps, {}, done + 0.3 * number / len(self.learn) / (self.params["rounds"] + 1))
        added = len(examples.features) - before
        log_line(f"{added} windows were wrongly found and are learned from")
        return added

    def images(self, rows: list[int]) -> Tensor:
        """Images [n, C, H, W] of 0..1."""
        return torch.from_numpy(self.image_cache.rows(rows)).permute(0, 3, 1, 2).float() / 255

    # What comes out -----------------------------------------------------------------------------------------

    @torch.inference_mode()
    def _detect(self, model: pyramid.HogDetector) -> list[dict[str, Any]]:
        """Return the detections on the images to score, after suppression: row, class, margin, box, whether correct."""
        detections = []
        for row in self.score:
            boxes, margins = (answer[0].numpy() for answer in model(self.images([row])))
            for kind in range(margins.shape[1]):
                likely = np.flatnonzero(margins[:, kind] > LOWEST)
                likely = likely[np.argsort(-margins[likely, kind], kind="stable")][:CANDIDATES]
                remaining = likely[geometry.nms(boxes[likely], margins[likely, kind], iou=self.params["iou_threshold"])]
                free = self.fitted[row][self.truth[row][1] == kind]
                for position in remaining:
                    overlap = overlaps(boxes[position][None], free)[0]
                    right = bool(len(free) and overlap.max() >= FITS)
                    free = np.delete(free, overlap.argmax(), 0) if right else free
                    detection = {"row": row, "kind": kind, "margin": float(margins[position, kind])}
                    detections.append({**detection, "box": boxes[position], "right": right})
            phases.advance()
        return detections

    def _likelihoods(self, detections: list[dict[str, Any]]) -> tuple[Tensor, Tensor]:
        """Return scale and shift of each class's margins so that their sigmoid is the rate of correct detections."""
        both = []
        for kind in range(len(self.version.classes)):
            own = [detection for detection in detections if detection["kind"] == kind]
            margins = torch.tensor([detection["margin"] for detection in own] or [-1.0])
            both.append(svm.sigmoid_of(margins, torch.tensor([detection["right"] for detection in own] or [False])))
        slope, shift = torch.tensor(both).T
        return slope, shift

    def _figures(self, detections: list[dict[str, Any]], slope: Tensor, shift: Tensor) -> dict[str, float]:
        """Return COCO's AP, and the AP of each class at IoU 0.5."""
        results = []
        for detection in detections:
            image, kind = self.version.images[detection["row"]], detection["kind"]
            x0, y0, x1, y1 = (float(v) for v in self.view.to_image(image, detection["box"][None])[0])
            score = float(torch.sigmoid(slope[kind] * detection["margin"] + shift[kind]))
            ids = {"image_id": detection["row"] + 1, "category_id": kind + 1}
            results.append({**ids, "score": score, "bbox": [x0, y0, x1 - x0, y1 - y0]})
        ground_truth = coco.truth(self.version, self._names, self.truth, self.score)
        return coco.figures(ground_truth, results, self._names)

    @property
    def _names(self) -> list[str]:
        return [str(entry["name"]) for entry in self.version.classes]

    def _export(self, model: pyramid.HogDetector, folder: Path, figures: dict[str, float]) -> None:
        metadata = {
            "task": CARD.task,
            "architecture": CARD.name,
            "preset": CARD.name,
            "classes": [{"id": int(entry["id"]), "name": str(entry["name"])} for entry in self.version.classes],
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": self.channels,
                "dtype": "float32", "layout": "NCHW", "mean": [0.0] * self.channels, "std": [255.0] * self.channels,
                "resize": self.view.resize,
            },
            "output": {"boxes": "boxes", "scores": "scores"},
            "decode": {
                "score_threshold": self.params["score_threshold"],
                "iou_threshold": self.params["iou_threshold"],
                "max_detections": 300,
            },
            "metrics": figures,
            "params": self.params,
        }  # fmt: skip
        samples = self.images(self.score[:8])
        export.write(model, folder, outputs=("boxes", "scores"), samples=samples, metadata=metadata)


def overlaps(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """IoU of boxes [n, 4] and [m, 4] xyxy → [n, m]."""
    low, high = np.maximum(ours[:, None, :2], theirs[None, :, :2]), np.minimum(ours[:, None, 2:], theirs[None, :, 2:])
    shared = (high - low).clip(0).prod(2)
    areas = (ours[:, 2:] - ours[:, :2]).prod(1)[:, None] + (theirs[:, 2:] - theirs[:, :2]).prod(1)[None]
    return np.asarray(shared / np.maximum(areas - shared, 1e-9))


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    torch.manual_seed(0)
    return Training(run, CARD.read(run.params())).train()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
