"""The image classifier. Start with `python -m presets.classify`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import data, distill, export, image_cache, lite0, nets, optimizers, own_network, phases, shown, variation
from .classify_card import CARD
from .events import with_events
from .marks import Marks
from .net import Net
from .ranks import Ranks, join
from .run import Refused, Run, log_line, refusals_without_traceback
from .trainer import Trainer

STATISTICS_ROWS = 2000  # pictures that mean and spread are measured on
OTHER = "other_"  # before the names of what is drawn for the image that another one is blended with
SCORED_PIXELS = 500 * 64 * 64  # that are looked at together when scoring


class Answering(nn.Module):
    """The classifier as it is exported: logits [N, C], averaged with the mirror image's where a parameter says so."""

    def __init__(self, model: nn.Module, *, mirror: bool) -> None:
        super().__init__()
        self.model, self.mirror = model, mirror

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.model(x)
        return (logits + self.model(x.flip(-1))) / 2 if self.mirror else logits


class Classification(shown.Shown):
    """The task the trainer works on. A task with other truths on the same networks (tag.py) begins from here."""

    card = CARD
    metric = "val/accuracy"
    heads: tuple[str, ...] = ("fc.",)

    def __init__(self, run: Run, params: dict[str, Any], ranks: Ranks) -> None:
        self.facts: dict[str, Any] = {}
        self.device = ranks.device
        self.version = data.read(run.dataset_dir)
        rows, self.labels = self._truth()
        self.learn, self.score, scored = data.split(self.version, rows, params)
        is_own = params["architecture"] == own_network.NAME
        self.recipe = own_network.RECIPE if is_own else nets.RECIPES[params["architecture"]]
        self.width, self.height = self._size(params)
        self.dense = self.recipe.dense
        self.params = params = self._settled(params)
        self.rows, self.rows_scored = len(self.learn), len(self.score) * (0.7 if params["flip_tta"] else 0.35)
        classes = len(self.version.classes)
        self.class_weights = self._balanced() if params["class_weights"] == "balanced" else torch.ones(classes)
        self.channels = 3 if params["architecture"] == "lite0" else image_cache.channels_of(self.version)
        with phases.packing(run, params, ranks):
            self.image_cache = image_cache.open_or_make(
                self.version,
                run.cache_dir,
                width=self.width,
                height=self.height,
                channels=self.channels,
                resize=params["resize"],
            )
        self.mean, self.std = self._statistics()
        torch.manual_seed(params["seed"])
        with own_network.watched(run, params, part=1):
            net = _network(params, classes=classes, channels=self.channels, width=self.width, height=self.height)
            if isinstance(net, own_network.Own):
                self.heads = (net.head,)
                export.rehearse(Answering(net, mirror=params["flip_tta"]), self.images(self.score[:2]))
        net.freeze(params["frozen_stages"])
        self.model: nn.Module = net
        self.teacher = distill.chosen(run, params, taught_by, classes=self._names, device=self.device)
        if ranks.leads:
            counts = f"{self.rows} images to learn from, {len(self.score)} to score on ({scored})"
            log_line(f"{counts}, {self.width}×{self.height}")
            if self.teacher:
                log_line(f"learns after {params['teacher']} ({self.teacher.architecture}) as well")

    def _truth(self) -> tuple[list[int], Tensor]:
        """Rows that can be learned from, and the class of each image [N], -1 where it has none."""
        index = self.version.class_index
        labels = torch.tensor([index.get(image.label, -1) for image in self.version.images])  # type: ignore[arg-type]  # None, where there is no label, is no key
        return torch.nonzero(labels >= 0).flatten().tolist(), labels

    def _balanced(self) -> Tensor:
        """Weight of each class [C] where rare ones count as much as frequent ones; the best checkpoint follows."""
        self.metric = "val/balanced_accuracy"
        return variation.balanced(self.labels[self.learn], len(self.version.classes))

    def _size(self, params: dict[str, Any]) -> tuple[int, int]:
        images = [self.version.images[row] for row in self.learn]
        usual = round(median(max(image.width, image.height) for image in images))
        side = max(nets.MIN_INPUT_PX, usual) if usual <= nets.SMALL else self.recipe.side
        width, height = params["width"], params["height"]
        width, height = width or height or side, height or width or side
        if min(width, height) < nets.MIN_INPUT_PX:
            raise Refused(
                f"{width}×{height} pixels are too few: choose {nets.MIN_INPUT_PX} at least for width and height."
            )
        return width, height

    def _settled(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters with the network's defaults where none were chosen."""
        batch = self.recipe.batch[max(self.width, self.height) > nets.SMALL]
        return {**params, "lr": params["lr"] or self.recipe.lr, "batch_size": params["batch_size"] or batch}

    def _statistics(self) -> tuple[Tensor, Tensor]:
        """Mean and spread of each channel, 0..255, over a fixed sample of what is learned from, or as pretrained."""
        if self.params["architecture"] == "lite0":
            return torch.full((3,), lite0.MEAN), torch.full((3,), lite0.STD)
        stride = max(1, self.rows // STATISTICS_ROWS)
        pixels = torch.from_numpy(self.image_cache.rows(self.learn[::stride])).double()
        return pixels.mean((0, 1, 2)).float(), pixels.std((0, 1, 2)).clamp(min=1.0).float()

    # Learning -----------------------------------------------------------------------------------------------

    def optimizer(self) -> torch.optim.Optimizer:
        """SGD with Nesterov momentum, or AdamW, as suits the network."""
        params = self.params
        if self.recipe.optimizer == "adamw":
            return lite0.optimizer(self.model, params, pretrained=getattr(self.model, "pretrained", False))
        decay = params["weight_decay"]
        return optimizers.SGD(self.model.parameters(), lr=params["lr"], momentum=0.9, weight_decay=decay, nesterov=True)

    def load(self, rows: list[int]) -> tuple[Tensor, ...]:
        """Pixels [n, H, W, C] uint8 and classes [n]; the same of the image that each is blended with, if any are.

        They come along, so that a batch that is learned from in parts is blended as the whole one.
        """
        chosen = [self.learn[row] for row in rows]
        batch = torch.from_numpy(self.image_cache.rows(chosen)), self.labels[chosen]
        return (*batch, *(part.roll(1, 0) for part in batch)) if self._blends else batch

    def draw(self, generator: torch.Generator, count: int) -> dict[str, Tensor]:
        """How each image is mirrored, moved, lit, blanked and blended."""
        draws = variation.draw(self.params, self.width, self.height, generator, count)
        others = {f"{OTHER}{name}": drawn.roll(1, 0) for name, drawn in draws.items()} if self._blends else {}
        return draws | others

    def loss(self, model: nn.Module, batch: Any, draws: dict[str, Tensor], ranks: Ranks) -> dict[str, Tensor]:
        """How far the answers are from what a varied batch shows."""
        params = self.params
        pixels, labels, *others = (part.to(self.device, non_blocking=True) for part in batch)
        x, targets = self._varied(pixels, draws), self._targets(labels)
        if others:
            of_other = {name.removeprefix(OTHER): drawn for name, drawn in draws.items() if name.startswith(OTHER)}
            x, targets = variation.blended(
                x, targets, self._varied(others[0], of_other), self._targets(others[1]), draws
            )
        logits = model(x.contiguous(memory_format=torch.channels_last)).float()
        wrong = self._misfit(logits, targets)
        if self.teacher is None:
            return {"class": wrong}
        taught = self.teacher.answers(x, self.mean, self.std, student_size=(self.width, self.height))
        soft = distill.soft_loss(logits, taught, params["temperature"])
        return {"class": (1 - params["distill"]) * wrong, "soft": params["distill"] * soft}

    def _varied(self, pixels: Tensor, draws: dict[str, Tensor]) -> Tensor:
        """uint8 [n, H, W, C] → normalised [n, C, H, W], each image varied as it was drawn."""
        x = self._normal(variation.moved(pixels, draws))
        if self.params["light_jitter"] or self.params["colour_jitter"]:
            x = variation.lit(x, draws)
        return variation.blanked(x, draws) if self.params["erase"] else x

    @property
    def _blends(self) -> bool:
        """Whether some images are blended with another one."""
        return bool(self.params["mixup"] or self.params["cutmix"])

    def _targets(self, labels: Tensor) -> Tensor:
        """How much of each class images show [n, C], from their classes [n]."""
        return F.one_hot(labels, len(self.class_weights)).float()

    def _misfit(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Cross-entropy with smoothed labels, each class as much as its weight says."""
        weights = self.class_weights.to(self.device)
        return F.cross_entropy(logits, targets, weights, label_smoothing=self.params["label_smoothing"])

    def _normal(self, pixels: Tensor) -> Tensor:
        """uint8 [n, H, W, C] → normalised [n, C, H, W]."""
        mean, std = self.mean.to(self.device), self.std.to(self.device)
        return ((pixels.float() - mean) / std).permute(0, 3, 1, 2)

    # Scoring ------------------------------------------------------------------------------------------------

    def images(self, rows: list[int]) -> Tensor:
        """Normalised images [n, C, H, W] as the finished model sees them."""
        pixels = torch.from_numpy(self.image_cache.rows(rows)).to(self.device)
        return self._normal(pixels).contiguous(memory_format=torch.channels_last)

    @torch.inference_mode()
    def evaluate(self, model: nn.Module, ranks: Ranks, rows: list[int]) -> dict[str, float]:
        """Share of images whose likeliest class is right, in all and as a mean over the classes; the mean loss."""
        answering, classes = self._answering(model), len(self.class_weights)
        mine, at_once = rows[ranks.rank :: ranks.world], self._at_once
        table, wrong = torch.zeros(classes * classes, dtype=torch.int64), 0.0
        for start in range(0, len(mine), at_once):
            some = mine[start : start + at_once]
            labels = self.labels[some].to(self.device)
            logits = answering(self.images(some)).float()
            table += torch.bincount(labels * classes + logits.argmax(1), minlength=len(table)).cpu()
            wrong += float(F.cross_entropy(logits, labels, reduction="sum"))
            phases.advance(len(some))
        tables, losses = zip(*ranks.gather([(table, wrong)]), strict=True)
        return {**variation.rates(sum(tables).view(classes, classes)), "val/loss": sum(losses) / len(rows)}

    @property
    def _at_once(self) -> int:
        """Images that are looked at together when scoring."""
        return max(1, min(500, SCORED_PIXELS // (self.width * self.height)))

    # For people to see --------------------------------------------------------------------------------------

    def counts(self) -> tuple[str, dict[str, int]]:
        counts = torch.bincount(self.labels[self.learn], minlength=len(self._names)).tolist()
        return "images", dict(zip(self._names, counts, strict=True))

    def targets(self, batch: Any, draws: dict[str, Tensor]) -> list[Marks]:
        return [Marks(caption=self._names[label]) for label in batch[1].tolist()]

    def truths(self, rows: list[int]) -> list[Marks]:
        return [Marks(caption=self._names[label]) for label in self.labels[rows].tolist()]

    def answers(self, model: nn.Module, images: Tensor) -> list[Marks]:
        sure, likeliest = self._answering(model)(images).float().softmax(1).max(1)
        each = zip(likeliest.tolist(), sure.tolist(), strict=True)
        return [Marks(caption=f"{self._names[label]} {score:.2f}") for label, score in each]

    @property
    def _names(self) -> list[str]:
        return [str(entry["name"]) for entry in self.version.classes]

    # Giving back --------------------------------------------------------------------------------------------

    def _answering(self, model: nn.Module) -> nn.Module:
        return Answering(model, mirror=self.params["flip_tta"]).eval()

    def export(self, model: nn.Module, folder: Path, figures: dict[str, float]) -> None:
        samples = self.images(self.score[:16])
        metadata = self._about(figures)
        export.write(self._answering(model), folder, outputs=("logits",), samples=samples, metadata=metadata)

    def _about(self, figures: dict[str, float]) -> dict[str, Any]:
        """What model.json says."""
        return {
            "task": self.card.task,
            "architecture": self.params["architecture"],
            "preset": self.card.name,
            "classes": [{"id": int(entry["id"]), "name": str(entry["name"])} for entry in self.version.classes],
            "input": {
                "name": "images", "height": self.height, "width": self.width, "channels": self.channels,
                "dtype": "float32", "layout": "NCHW", "mean": self.mean.tolist(), "std": self.std.tolist(),
                "resize": self.params["resize"],
            },
            "output": {"logits": "logits"},
            "metrics": figures,
            "params": self.params,
        }  # fmt: skip


def taught_by(metadata: Mapping[str, Any]) -> nn.Module:
    """Build the network of a finished classifier, without its weights."""
    own, input_spec = {**metadata["params"], "architecture": metadata["architecture"]}, metadata["input"]
    of = {name: input_spec[name] for name in ("channels", "width", "height")}
    return Answering(_network(own, classes=len(metadata["classes"]), **of), mirror=own["flip_tta"])


def _network(params: Mapping[str, Any], *, classes: int, channels: int, width: int, height: int) -> Net:
    """The network that the parameters choose, with fresh weights."""
    of = {"classes": classes, "channels": channels, "width": width, "height": height}
    if params["architecture"] == own_network.NAME:
        return own_network.make(params["network"], **of)
    return nets.build(params["architecture"], net_width=params["net_width"], **of)


def main(kind: type[Classification] = Classification) -> int:
    """Train as the environment says; return the exit code."""
    run = with_events(Run.from_environment())
    params = kind.card.read(run.params())
    ranks = join()
    try:
        task = kind(run, params, ranks)
        with own_network.watched(run, params, part=2):  # it ends by itself, but for a network that stands still
            return Trainer(task, run, task.params, ranks).train()
    finally:
        ranks.leave()


if __name__ == "__main__":
    with refusals_without_traceback():
        raise SystemExit(main())
