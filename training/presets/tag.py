"""The image tagger: all classes that are on an image. Start with `python -m presets.tag`.

Networks, variations and the loop are the classifier's; what differs is that each class is a question of its own: binary
cross-entropy, and a threshold for each class, chosen on the images that are scored.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import classify, data, phases, ranking
from .classify import Classification
from .marks import Marks
from .ranks import Ranks
from .run import refusals_without_traceback
from .tag_card import CARD

MAX_WEIGHT = 100.0  # of an image that shows a rare class


class Answering(classify.Answering):
    """The tagger as it is exported: logits [N, C], nought where a class is just taken to be there."""

    cuts: Tensor

    def __init__(self, model: nn.Module, cuts: Tensor, *, mirror: bool) -> None:
        super().__init__(model, mirror=mirror)
        self.register_buffer("cuts", cuts.clone())

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) - self.cuts


class Tagging(Classification):
    """The task the trainer works on; `labels` are [N, C], 1 where a class is on an image."""

    card = CARD
    metric = "val/map"

    def __init__(self, run: Any, params: dict[str, Any], ranks: Ranks) -> None:
        super().__init__(run, params, ranks)
        self.cuts = torch.zeros(len(self.version.classes))  # logits from which on a class is taken to be there

    def _truth(self) -> tuple[list[int], Tensor]:
        """Return the annotated rows, and the classes of the objects on each image."""
        return data.annotated_rows(self.version), torch.from_numpy(data.classes_on(self.version)).float()

    def _balanced(self) -> Tensor:
        """Return the weight of an image with a class relative to one without it [C]: both kinds count the same."""
        learned = self.labels[self.learn]
        there = learned.sum(0)
        return torch.where(there > 0, (len(learned) - there) / there.clamp(min=1), 1.0).clamp(
            1 / MAX_WEIGHT, MAX_WEIGHT
        )

    def _targets(self, labels: Tensor) -> Tensor:
        return labels

    def _misfit(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Binary cross-entropy of each class, smoothed, where it is there as much as its weight says."""
        smooth = self.params["label_smoothing"]
        soft = (1 - smooth) * targets + smooth / 2
        return F.binary_cross_entropy_with_logits(logits, soft, pos_weight=self.class_weights.to(self.device))

    # Scoring ------------------------------------------------------------------------------------------------

    @torch.inference_mode()
    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """Return the mean average precision of the present classes, mean F1 at the best thresholds, and the mean loss.

        Scored on all images, the thresholds stay with the model.
        """
        logits, truth = self._logits(model, ranks, rows), self.labels[rows]
        there = truth.bool()
        each = [ranking.best_cut(logits[:, column], there[:, column]) for column in range(logits.shape[1])]
        present = [column for column in range(logits.shape[1]) if there[:, column].any()]
        if len(rows) == len(self.score):
            self.cuts = torch.tensor([cut for cut, _f1 in each])
        precision = [ranking.average_precision(logits[:, column], there[:, column]) for column in present]
        return {
            "val/map": sum(precision) / max(1, len(present)),
            "val/macro_f1": sum(each[column][1] for column in present) / max(1, len(present)),
            "val/loss": float(F.binary_cross_entropy_with_logits(logits, truth)),
        }

    def _logits(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> Tensor:
        """Return the logits of images [N, C], without thresholds; each rank computes a part."""
        answering = classify.Answering(model, mirror=self.params["flip_tta"]).eval()
        mine = list(range(ranks.rank, len(rows), ranks.world))
        parts = []
        for start in range(0, len(mine), self._at_once):
            places = mine[start : start + self._at_once]
            parts.append((places, answering(self.images([rows[index] for index in places])).float().cpu()))
            phases.advance(len(places))
        logits = torch.zeros(len(rows), len(self.version.classes))
        for places, own in ranks.gather(parts):
            logits[places] = own
        return logits

    # For people to see --------------------------------------------------------------------------------------

    def counts(self) -> tuple[str, dict[str, int]]:
        return "images", dict(zip(self._names, self.labels[self.learn].sum(0).int().tolist(), strict=True))

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        return [self._named(row) for row in batch[1]]

    def truths(self, rows: list[int]) -> list[Marks]:
        return [self._named(row) for row in self.labels[rows]]

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        return [self._named(row > 0) for row in self._answering(model)(images).float().cpu()]

    def sure(self, logits: Tensor) -> Tensor:
        """Each class is a question of its own."""
        return (logits - self.cuts.to(logits.device)).sigmoid()

    def _named(self, there: Tensor) -> Marks:
        return Marks(caption=", ".join(name for name, shown in zip(self._names, there.tolist(), strict=True) if shown))

    # Giving back --------------------------------------------------------------------------------------------

    def _answering(self, model: nn.Module) -> nn.Module:
        return Answering(model, self.cuts.to(self.device), mirror=self.params["flip_tta"]).eval()

    def _about(self, figures: dict[str, float]) -> dict[str, Any]:
        thresholds = [round(value, 4) for value in self.cuts.sigmoid().tolist()]
        return {**super()._about(figures), "decode": {"score_threshold": 0.5}, "thresholds": thresholds}


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(classify.main(Tagging))
