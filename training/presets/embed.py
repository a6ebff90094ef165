"""The image embedder: like images near each other. Start with `python -m presets.embed`."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import data, export, image_cache, lite0, neighbours, nets, optimizers, phases, points, shown
from .embed_card import CARD
from .events import with_events
from .marks import Marks
from .ranks import Ranks, join
from .run import Refused, Run, log_line, refusals_without_traceback
from .trainer import Trainer

STATISTICS_ROWS = 2000  # images that mean and spread are measured on
CHECKSUM_LENGTH = 12  # signs of its checksum say which image of the dataset a known one is, to those who may see it
FORWARD = 0.35  # of learning from an image is looking at it once


class Embedding(shown.Shown):
    """The task the trainer works on."""

    heads: tuple[str, ...] = ("centres",)
    metric = "val/recall_1"

    def __init__(self, run: Run, params: dict[str, Any], ranks: Ranks) -> None:
        self.facts: dict[str, Any] = {}
        self.device = ranks.device
        self.version = data.read(run.dataset_dir)
        self.index = self.version.class_index
        rows = [row for row, image in enumerate(self.version.images) if image.label in self.index]
        self.learn, self.score, scored = data.split(self.version, rows, params)
        self.labels = torch.tensor([self.index.get(image.label, -1) for image in self.version.images])  # type: ignore[arg-type]  # None, where there is no label, is no key
        shown = len({self.version.images[row].label for row in self.learn})
        if shown < 2:
            raise Refused(f"{self.version.name or 'The dataset'} shows one class: two are needed to tell apart.")
        self.recipe = nets.RECIPES[params["architecture"]]
        self.width, self.height = self._size(params)
        batch = self.recipe.batch[max(self.width, self.height) > nets.SMALL]
        self.dense = self.recipe.dense
        self.params = params = {
            **params, "lr": params["lr"] or self.recipe.lr, "batch_size": params["batch_size"] or batch,
        }  # fmt: skip
        if params["gallery"] < shown:
            raise Refused(f"gallery {params['gallery']} leaves classes without a known image: choose {shown} at least, "
                          "one for each class.")  # fmt: skip
        chosen = neighbours.spread(self.labels[self.learn].tolist(), params["gallery"])
        self.known = [self.learn[index] for index in chosen]  # images that stay with the model
        self.known_vectors: Tensor | None = None
        self.whitening: nn.Module = nn.Identity()
        looks = FORWARD * (2 if params["flip_tta"] else 1)
        self.rows, self.rows_scored = len(self.learn), looks * (len(self.score) + len(self.known))
        self.channels = 3 if params["architecture"] == "lite0" else image_cache.channels_of(self.version)
        with phases.packing(run, params, ranks):
            self.image_cache = image_cache.open_or_make(
                self.version, run.cache_dir, width=self.width, height=self.height, channels=self.channels,
                resize=params["resize"],
            )  # fmt: skip
        self.mean, self.std = self._statistics()
        torch.manual_seed(params["seed"])
        net = nets.build(
            params["architecture"], classes=params["dimensions"], channels=self.channels,
            net_width=params["net_width"], width=self.width, height=self.height,
        )  # fmt: skip
        net.freeze(params["frozen_stages"])
        self.model: nn.Module = neighbours.Embedder(net, dimensions=params["dimensions"], classes=len(self.index))
        if ranks.leads:
            counts = f"{self.rows} images to learn from, {len(self.score)} to score on ({scored})"
            log_line(f"{counts}, {self.width}×{self.height}; {len(self.known)} stay as the known ones")

    def _size(self, params: dict[str, Any]) -> tuple[int, int]:
        images = [self.version.images[row] for row in self.learn]
        usual = round(median(max(image.width, image.height) for image in images))
        side = max(nets.MIN_INPUT_PX, usual) if usual <= nets.SMALL else self.recipe.side
        width, height = params["width"] or params["height"] or side, params["height"] or params["width"] or side
        if min(width, height) < nets.MIN_INPUT_PX:
            raise Refused(
                f"{width}×{height} pixels are too few: choose {nets.MIN_INPUT_PX} at least for width and height."
            )
        return width, height

    def _statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and spread of each channel, 0..255, over a fixed sample of what is learned from, or as pretrained."""
        if self.params["architecture"] == "lite0":
            return torch.full((3,), lite0.MEAN), torch.full((3,), lite0.STD)
        stride = max(1, self.rows // STATISTICS_ROWS)
        pixels = torch.from_numpy(self.image_cache.rows(self.learn[::stride])).double()
        return pixels.mean((0, 1, 2)).float(), pixels.std((0, 1, 2)).clamp(min=1.0).float()

    # Learning -----------------------------------------------------------------------------------------------

    def optimizer(self) -> torch.optim.Optimizer:
        """As suits the network: SGD with Nesterov momentum, or AdamW with slower pretrained layers."""
        params = self.params
        if self.recipe.optimizer == "sgd":
            learning = [p for p in self.model.parameters() if p.requires_grad]
            decay = params["weight_decay"]
            return optimizers.SGD(learning, lr=params["lr"], momentum=0.9, weight_decay=decay, nesterov=True)
        old = [p for n, p in self.model.named_parameters() if p.requires_grad and n.startswith("net.backbone.")]
        fresh = [p for n, p in self.model.named_parameters() if p.requires_grad and not n.startswith("net.backbone.")]
        groups: list[dict[str, Any]] = [{"params": fresh, "lr": params["lr"]}]
        groups += [{"params": old, "lr": params["lr"] * params["backbone_lr"]}] if old else []
        return optimizers.AdamW(groups, weight_decay=params["weight_decay"], fused=True)

    def load(self, rows: list[int]) -> tuple[Tensor, Tensor]:
        """Pixels [n, H, W, C] uint8 and classes [n]."""
        chosen = [self.learn[row] for row in rows]
        return torch.from_numpy(self.image_cache.rows(chosen)), self.labels[chosen]

    def draw(self, generator: torch.Generator, count: int) -> dict[str, Tensor]:
        """How each image is mirrored, scaled and moved; by whole pixels, as anything else would blur it."""
        params = self.params
        uniform = torch.rand(count, 5, generator=generator)
        mirrored = torch.stack([uniform[:, 0] < params["flip"], uniform[:, 1] < params["vertical_flip"]], 1)
        scale = 1 + params["scale_jitter"] * (2 * uniform[:, 2:3] - 1)
        size = torch.tensor([self.width, self.height])
        farthest = (params["shift"] * size).round() + 0.499
        pixels = (farthest * (2 * uniform[:, 3:] - 1)).round()
        return {"zoom": (1 - 2 * mirrored.float()) * scale, "move": 2 * pixels / size}

    def loss(self, model: nn.Module, batch: Any, draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """ArcFace: the angle to the centre of the image's own class, against those to all others."""
        pixels, labels = (part.to(self.device, non_blocking=True) for part in batch)
        images = self._normal(pixels)
        theta = torch.cat([torch.diag_embed(draws["zoom"]), draws["move"][..., None]], 2)
        grid = F.affine_grid(theta, list(images.shape), align_corners=False)
        sampled = F.grid_sample(images, grid, padding_mode="border", align_corners=False)
        _vectors, cosines = model(sampled.contiguous(memory_format=torch.channels_last))
        margin, scale = self.params["arc_margin"], self.params["arc_scale"]
        return {"arc_loss": neighbours.arcface(cosines, labels, margin=margin, scale=scale)}

    def _normal(self, pixels: Tensor) -> Tensor:
        """uint8 [n, H, W, C] → normalised [n, C, H, W]."""
        mean, std = self.mean.to(self.device), self.std.to(self.device)
        return ((pixels.float() - mean) / std).permute(0, 3, 1, 2)

    # Scoring ------------------------------------------------------------------------------------------------

    def images(self, rows: list[int]) -> Tensor:
        """Normalised images [n, C, H, W] as the finished model sees them."""
        pixels = torch.from_numpy(self.image_cache.rows(rows)).to(self.device)
        return self._normal(pixels).contiguous(memory_format=torch.channels_last)

    @torch.no_grad()
    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """Return how often the nearest neighbours are of one class; on all images also the gallery's accuracy."""
        model.eval()
        part, share = len(rows) / len(self.score), self.params["whitening"]
        sampled = points.sample(self.known, part)
        phases.expect((len(sampled) + len(rows)) // ranks.world)
        gallery = self._vectors(model, ranks, sampled)
        self.whitening = neighbours.Whitening(gallery, share) if share else nn.Identity()
        vectors, classes = self.whitening(self._vectors(model, ranks, rows)), self.labels[rows]
        metrics = {f"val/{name}": value for name, value in neighbours.figures(vectors, classes).items()}
        if part == 1:
            self.known_vectors = gallery = self.whitening(gallery)
            right = []
            for start in range(0, len(rows), neighbours.AT_ONCE):
                some = slice(start, start + neighbours.AT_ONCE)
                predicted = neighbours.named(vectors[some] @ gallery.T, self.labels[self.known], len(self.index))
                right.append(predicted == classes[some])
            metrics["val/knn_accuracy"] = float(torch.cat(right).float().mean())
        return metrics

    def _vectors(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> Tensor:
        """Return unit vectors of these images [N, D]; each rank computes a part."""
        mine = list(range(ranks.rank, len(rows), ranks.world))
        parts = []
        for start in range(0, len(mine), neighbours.AT_ONCE):
            places = mine[start : start + neighbours.AT_ONCE]
            images = self.images([rows[index] for index in places])
            own = neighbours.vectors_of(model.net, images, mirror=self.params["flip_tta"])  # type: ignore[arg-type]  # an Embedder
            parts.append((places, own.cpu()))
            phases.advance(len(places))
        vectors = torch.zeros(len(rows), self.params["dimensions"])
        for places, own in ranks.gather(parts):
            vectors[places] = own
        return vectors

    # For people to see --------------------------------------------------------------------------------------

    def counts(self) -> tuple[str, dict[str, int]]:
        counts = torch.bincount(self.labels[self.learn], minlength=len(self._names)).tolist()
        return "images", dict(zip(self._names, counts, strict=True))

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        return [Marks(caption=self._names[label]) for label in batch[1].tolist()]

    def truths(self, rows: list[int]) -> list[Marks]:
        return [Marks(caption=self._names[label]) for label in self.labels[rows].tolist()]

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        """The class whose centre is nearest, with the cosine of the angle to it."""
        near, nearest = model(images)[1].float().max(1)
        each = zip(nearest.tolist(), near.tolist(), strict=True)
        return [Marks(caption=f"{self._names[label]} {cosine:.2f}") for label, cosine in each]

    @property
    def _names(self) -> list[str]:
        return [str(entry["name"]) for entry in self.version.classes]

    # Giving back --------------------------------------------------------------------------------------------

    def export(self, model: nn.Module, folder: Path, figures: dict[str, float]) -> None:
        """Write the finished model with the vectors of the gallery images; model.json describes them."""
        gallery = self.known_vectors
        if gallery is None:
            raise RuntimeError("the model is exported before it was scored on all images")
        metadata = {
            "task": CARD.task,
            "architecture": self.params["architecture"],
            "preset": CARD.name,
            "classes": [{"id": int(entry["id"]), "name": str(entry["name"])} for entry in self.version.classes],
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": self.channels,
                "dtype": "float32", "layout": "NCHW", "mean": self.mean.tolist(), "std": self.std.tolist(),
                "resize": self.params["resize"],
            },
            "output": {"vector": "vectors", "similarity": "similarity"},
            "gallery": {
                "classes": self.labels[self.known].tolist(),
                "images": [self.version.images[row].sha256[:CHECKSUM_LENGTH] for row in self.known],
            },
            "metrics": figures,
            "params": self.params,
        }  # fmt: skip
        mirror = self.params["flip_tta"]
        answering = neighbours.Answering(model, gallery, self.whitening, mirror=mirror).eval()  # type: ignore[arg-type]  # made above
        samples = self.images(self.score[:16])
        export.write(answering, folder, outputs=("vectors", "similarity"), samples=samples, metadata=metadata)


def main() -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    params = CARD.read(run.params())
    ranks = join()
    try:
        task = Embedding(run, params, ranks)
        return Trainer(task, run, task.params, ranks).train()
    finally:
        ranks.leave()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
