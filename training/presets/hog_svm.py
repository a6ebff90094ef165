"""The classifier by gradient histograms and linear SVMs. Start with `python -m presets.hog_svm`.

The machines are learned all at once by L-BFGS on the squared hinge loss, which needs no learning rate and ends by
itself. It can be paused; there is nothing worth a checkpoint.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from . import data, export, image_cache, phases, svm
from .events import with_events
from .hog import BLOCK, Hog, HogSvm
from .hog_svm_card import CARD
from .pauses import ALONE, EXPORT_S, Ended, Pausable
from .run import COMPLETED, TERMINATED, Refused, Run, log_line, refusals_without_traceback

SMALL, LARGE = 64, 96  # images up to this side are taken as they are; what larger ones are brought to
AT_ONCE = 256  # images whose histograms are computed together
MAX_BYTES = 4 << 30  # of the histograms of all images


class Training:
    """One run: histograms of all images, the machines, figures, the exported model."""

    def __init__(self, run: Run, params: dict[str, Any]) -> None:
        self.run = run
        self.version = data.read(run.dataset_dir)
        index = self.version.class_index
        rows = [row for row, image in enumerate(self.version.images) if image.label in index]
        self.learn, self.score, scored = data.split(self.version, rows, params)
        self.labels = torch.tensor([index.get(image.label, -1) for image in self.version.images])  # type: ignore[arg-type]  # None, where there is no label, is no key
        self.width, self.height = self._size(params)
        cell = params["cell"] or (4 if max(self.width, self.height) <= SMALL else 8)
        self.params = {**params, "cell": cell}
        blocks = (self.width // cell - 1, self.height // cell - 1)
        if min(blocks) < 1:
            raise Refused(f"{self.width}×{self.height} pixels hold less than {BLOCK}×{BLOCK} cells of {cell}: "
                          "choose a smaller cell or a larger width and height.")  # fmt: skip
        self.dims = blocks[0] * blocks[1] * BLOCK**2 * params["bins"]
        if 4 * self.dims * len(self.learn) > MAX_BYTES:
            raise Refused(f"The histograms of {len(self.learn)} images take {4 * self.dims * len(self.learn) >> 30} "
                          "GiB: choose a larger cell, or a smaller width and height.")  # fmt: skip
        self.channels = image_cache.channels_of(self.version)
        self.hog = Hog(cell=cell, bins=params["bins"]).eval()
        with phases.packing(run, {"budget_minutes": 0}, ALONE):
            self.image_cache = image_cache.open_or_make(
                self.version, run.cache_dir, width=self.width, height=self.height, channels=self.channels,
                resize=params["resize"],
            )  # fmt: skip
        log_line(f"{len(self.learn)} images to learn from, {len(self.score)} to score on ({scored}), "
                 f"{self.width}×{self.height}, {self.dims} values each")  # fmt: skip

    def _size(self, params: dict[str, Any]) -> tuple[int, int]:
        usual = round(median(max(image.width, image.height) for image in map(self._image, self.learn)))
        side = max(16, usual) if usual <= SMALL else LARGE
        width, height = params["width"], params["height"]
        return width or height or side, height or width or side

    def _image(self, row: int) -> data.Image:
        return self.version.images[row]

    # The road ---------------------------------------------------------------------------------------------

    def train(self) -> int:
        """Return the exit code."""
        self.run.listen()
        self.job = Pausable(self.run)
        try:
            features = self._features(self.learn, done=0.0, share=0.4)
            self.job.looked_through(len(self.learn), len(self.score))
            weights, bias, loss, steps = self._machines(features, self.labels[self.learn])
        except Ended:
            return TERMINATED
        self.run.end_on_signal()
        with self.job.phases.during(
            phases.SCORING, step=steps, total=len(self.score), thought_s=self.job.scoring_s,
            after={phases.EXPORTING: EXPORT_S},
        ):  # fmt: skip
            margins, labels = self._margins(HogSvm(self.hog, weights, bias, 1.0).eval()), self.labels[self.score]
            scale = svm.scale_of(margins, labels)
            figures = {
                "val/accuracy": float((margins.argmax(1) == labels).float().mean()),
                "val/loss": float(F.cross_entropy(margins * scale, labels)),
            }
        model = HogSvm(self.hog, weights, bias, scale).eval()
        self.run.report(steps, figures)
        log_line("  ".join(f"{name} {value:.4f}" for name, value in figures.items()))
        with self.job.phases.during(phases.EXPORTING, step=steps, thought_s=EXPORT_S, after={}):
            self._export(model, self.run.output_dir / "model", figures)
        self.job.completed(steps, {**figures, "train/loss": loss})
        return COMPLETED

    def _features(self, rows: list[int], *, done: float, share: float) -> Tensor:
        """Histograms [rows, values] of images."""
        out = torch.empty(len(rows), self.dims)
        for start in range(0, len(rows), AT_ONCE):
            some = rows[start : start + AT_ONCE]
            with torch.inference_mode():
                out[start : start + len(some)] = self.hog(self.images(some)).flatten(1)
            self.job.between(0, {}, done + share * (start + len(some)) / len(rows))
        return out

    def _machines(self, features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, float, int]:
        """Weights [classes, values] and bias [classes] of the machines, the last loss, and the iterations it took."""

        def report_iteration(iteration: int, loss: float) -> None:
            self.job.between(iteration, {"train/loss": loss}, 0.4 + 0.6 * iteration / self.params["iterations"])

        signs = svm.signs_of(labels, len(self.version.classes))
        return svm.learn(
            features,
            signs,
            cost=self.params["svm_cost"],
            iterations=self.params["iterations"],
            on_iteration=report_iteration,
        )

    # What comes out -----------------------------------------------------------------------------------------

    def images(self, rows: list[int]) -> Tensor:
        """Images [n, C, H, W] of 0..1."""
        return torch.from_numpy(self.image_cache.rows(rows)).permute(0, 3, 1, 2).float() / 255

    @torch.no_grad()
    def _margins(self, model: HogSvm) -> Tensor:
        """Of the images to score on [n, classes]."""
        margins = []
        for start in range(0, len(self.score), AT_ONCE):
            some = self.score[start : start + AT_ONCE]
            margins.append(model(self.images(some)))
            phases.advance(len(some))
        return torch.cat(margins)

    def _export(self, model: HogSvm, folder: Path, figures: dict[str, float]) -> None:
        metadata = {
            "task": CARD.task,
            "architecture": CARD.name,
            "preset": CARD.name,
            "classes": [{"id": int(entry["id"]), "name": str(entry["name"])} for entry in self.version.classes],
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": self.channels,
                "dtype": "float32", "layout": "NCHW", "mean": [0.0] * self.channels, "std": [255.0] * self.channels,
                "resize": self.params["resize"],
            },
            "output": {"logits": "logits"},
            "metrics": figures,
            "params": self.params,
        }  # fmt: skip
        export.write(model, folder, outputs=("logits",), samples=self.images(self.score[:16]), metadata=metadata)


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    torch.manual_seed(0)
    return Training(run, CARD.read(run.params())).train()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
