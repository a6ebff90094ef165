"""Descriptions of presets and their parameters, as data. Pages read them as the presets do, so no torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .run import Refused

Value = bool | int | float | str
Group = Literal["duration", "data", "model", "optimization", "augmentation", "evaluation", "runtime"]
"""Groups of parameters in forms, in their order; `param_labels.GROUPS` has their labels."""


@dataclass(frozen=True)
class Param:
    """A parameter of a preset. Bounds count for numbers, `choices` for words; "text" is words in several lines.

    Args:
        group: heading of forms under which it is listed.
        advanced: seldom changed; it follows the others of its group.
    """

    name: str
    kind: Literal["int", "float", "bool", "str", "text"]
    default: Value
    help: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    advanced: bool = False
    group: Group = "model"

    @property
    def is_free_text(self) -> bool:
        """Whether any words will do, and none may mean something too."""
        return self.kind in ("str", "text") and not self.choices

    def read(self, raw: Any) -> Value:
        """Convert `raw` to this parameter's type; strings sent by a form are accepted.

        Raises:
            Refused: wrong type, out of bounds or not among the choices.
        """
        value = self._typed(raw)
        if self.choices and value not in self.choices:
            raise Refused(f"{self.name} is one of {', '.join(self.choices)}, not {value}.")
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if self.minimum is not None and not value >= self.minimum:
                raise Refused(f"{self.name} is at least {self.minimum:g}, not {value:g}.")
            if self.maximum is not None and not value <= self.maximum:
                raise Refused(f"{self.name} is at most {self.maximum:g}, not {value:g}.")
        return value

    def _typed(self, raw: Any) -> Value:
        wrong = Refused(f"{self.name} is of type {self.kind}, {raw!r} is not.")
        if self.kind == "str":
            if isinstance(raw, int) and not isinstance(raw, bool):
                return str(raw)  # a class may be called 1, and a command line sends that as a number
            if not isinstance(raw, str):
                raise wrong
            return raw
        if self.kind == "text":
            if not isinstance(raw, str):
                raise wrong
            return raw.replace("\r\n", "\n")
        if self.kind == "bool":
            booleans = {"true": True, "false": False, "1": True, "0": False, "on": True, "off": False}
            if isinstance(raw, bool):
                return raw
            if str(raw).lower() not in booleans:
                raise wrong
            return booleans[str(raw).lower()]
        try:
            number = float(raw)
        except (TypeError, ValueError):
            raise wrong from None
        if isinstance(raw, bool) or (self.kind == "int" and number != int(number)):
            raise wrong
        return int(number) if self.kind == "int" else number


@dataclass(frozen=True)
class Expected:
    """A measured result of a preset, and the conditions it was measured under."""

    dataset: str
    metric: str
    value: float
    conditions: str


@dataclass(frozen=True)
class Preset:
    """A ready-made training; its program is `python -m <module>`.

    Args:
        task: name of one of training.catalog.task_kinds.
        network: name of the network that it trains by default, for a line of text.
        weights_m: parameters of that network, in millions; 0 where they depend on the data.
    """

    name: str
    task: str
    title: str
    purpose: str
    architectures: Mapping[str, str]
    parameters: tuple[Param, ...]
    expected: tuple[Expected, ...]
    size: str
    reference_time: str
    pause: bool = True
    suspend: bool = True
    finish: bool = True
    restore: bool = True
    looks: bool = True  # its program heeds AIP_SHOW, see preview.py and layers.py
    device_kinds: tuple[str, ...] = ("gpu", "cpu")  # what it can compute on
    created: str = ""  # the day it joined the catalog, YYYY-MM-DD
    network: str = ""
    weights_m: float = 0.0

    @property
    def module(self) -> str:
        return f"presets.{self.name}"

    @property
    def headline(self) -> Expected | None:
        """The measured result that a card shows: of the first dataset and metric, the one measured last."""
        first = next(iter(self.expected), None)
        results = [row for row in self.expected if first and (row.dataset, row.metric) == (first.dataset, first.metric)]
        return results[-1] if results else None

    @property
    def cpu_only(self) -> bool:
        """Whether it computes on CPUs only, so that a GPU would be reserved and not used."""
        return self.device_kinds == ("cpu",)

    def read(self, raw: Mapping[str, Any]) -> dict[str, Value]:
        """Return all parameters: the defaults, overridden by `raw`.

        Raises:
            Refused: an unknown name (with the list of known ones), a wrong type, out of bounds.
        """
        params = {param.name: param for param in self.parameters}
        unknown = sorted(set(raw) - set(params))
        if unknown:
            raise Refused(f"{self.name} has no parameter {', '.join(unknown)}. It has: {', '.join(sorted(params))}.")
        return {name: param.read(raw[name]) if name in raw else param.default for name, param in params.items()}


def tiling() -> tuple[Param, ...]:
    """The parameters of presets that can look at large images in tiles."""
    return (
        Param("tile", "int", 0, ("Train and predict on tiles of this many pixels at the original image size: for "
                                 "small objects in large images. 0: on whole images."), "px", 0, 2048, group="data"),
        Param("tile_overlap", "float", 0.2, ("Share of a side that neighboring tiles have in common: about the "
                                             "size of most objects, so "
                                             "that each is complete in one tile."), "", 0, 0.75, advanced=True,
              group="data"),
    )  # fmt: skip


def multi_scale() -> Param:
    """The parameter of presets that can learn at several sizes of the input, see warp.py."""
    return Param("multi_scale", "float", 0.0, ("Each batch is trained at its own input size, smaller or larger by "
                                               "up to this share, in steps of 32 pixels."),
          "", 0, 0.5, advanced=True, group="augmentation")  # fmt: skip


def common(
    *, batch: int, rate: float, decay: float, ema: float, warmup: float, anneal: str, resize: str = "stretch"
) -> tuple[Param, ...]:
    """The parameters every preset has, with the task's own defaults."""
    return (
        Param("budget_minutes", "float", 10.0, ("Training time, without data preparation, evaluation and export. "
                                                "0: no limit; epochs or steps decide."), "min", 0, 100_000,
              group="duration"),
        Param("epochs", "float", 0.0, "Stop after this number of epochs. 0: limited by the time budget.", "", 0, 1e6,
              group="duration"),
        Param("steps", "int", 0, "Stop after this number of optimizer steps. 0: "
                                 "limited by the time budget.", "", 0, 1e9,
              advanced=True, group="duration"),
        Param("batch_size", "int", batch, "Images per optimizer step, over all devices.", "images", 1, 65536,
              group="optimization"),
        Param("lr", "float", rate, "Maximum learning rate, per optimizer step.", "", 1e-7, 10, group="optimization"),
        Param("weight_decay", "float", decay, "Weight decay (L2 regularization).", "", 0, 1, advanced=True,
              group="optimization"),
        Param("warmup", "float", warmup, "Share of the training in which the learning rate increases.", "", 0, 0.9,
              advanced=True, group="optimization"),
        Param("anneal", "str", anneal, ("Learning rate schedule: by time, or (plateau) reduced to a tenth, twice, "
                                        "when the metric does not improve for a number of evaluations; then the "
                                        "training ends."), "",
              choices=("cosine", "linear", "plateau"), advanced=True, group="optimization"),
        Param("patience", "int", 0, ("Stop after this number of evaluations without improvement, even within the "
                                     "time budget. 0: never; with the plateau schedule 5."), "", 0, 1000,
              group="duration"),
        Param("accumulate", "int", 1, ("Gradient accumulation: split each batch into this many parts for less "
                                       "memory; the result is the same except for batch norm. 0: as few as fit "
                                       "into the GPU or its share."), "", 0, 1024,
              advanced=True, group="optimization"),
        Param("ema", "float", ema, "Decay of the averaged weights (EMA) that are evaluated and exported. 0: no "
                                   "averaging.", "", 0, 0.99999, advanced=True, group="optimization"),
        Param("weights", "str", "", ("Initial weights: a model as OWNER/NAME v2, or a .safetensors or .pth file in "
                                     "your home folder. Tensors are used if name and shape match. Layers for other "
                                     "classes of a platform model are reinitialized; for a file, equal class "
                                     "counts are treated as the same classes."), group="model"),
        Param("train_splits", "str", "train", "Training splits, separated by commas.", group="data"),
        Param("eval_split", "str", "val", ("Split for validation; if it is missing or used for training: test, "
                                           "otherwise a fixed tenth of the training images."), group="evaluation"),
        Param("folds", "int", 0, ("Cross-validation: the training images are divided into this many parts; each "
                                  "part validates one training on the others. 0: none."), "", 0, 20, advanced=True,
              group="evaluation"),
        Param("fold", "int", 0, "The part used for evaluation. 0: each once, "
                                "in as many training jobs.", "", 0, 20, advanced=True, group="evaluation"),
        Param("group_by", "str", "", ("Related images, such as photographs of one patient, are never divided "
                                      "between training and evaluation. folder: images of one folder; otherwise a "
                                      "regular expression, whose match in the path names the group, such as "
                                      "patient\\d+."),
              advanced=True, group="data"),
        Param("width", "int", 0, "Input width. 0: from the dataset.", "px", 0, 2048, group="data"),
        Param("height", "int", 0, "Input height. 0: from the dataset.", "px", 0, 2048, group="data"),
        Param("resize", "str", resize, "How images with other aspect ratios are resized.", "",
              choices=(*(("auto",) if resize == "auto" else ()), "stretch", "letterbox"), advanced=True, group="data"),
        Param("flip", "float", 0.5, "Share of training images flipped horizontally.", "", 0, 1, group="augmentation"),
        Param("vertical_flip", "float", 0.0, ("Share of training images flipped vertically: useful where "
                                              "orientation has no meaning, as "
                                              "in microscopy and aerial images."), "", 0, 1, group="augmentation"),
        Param("seed", "int", 0, "Same seed, same data, same node: same model.", "", 0, 2**31 - 1, group="optimization"),
        Param("checkpoint_minutes", "float", 5.0, "Maximum time between two checkpoints.", "min", 0.0, 1440,
              advanced=True, group="runtime"),
        Param("eval_share", "float", 0.05, ("Share of the time for evaluation during training: at least four times "
                                            "before the end, on a sample of the images if time is short. 0: only "
                                            "at the end."), "", 0, 1,
              advanced=True, group="evaluation"),
        Param("amp", "bool", True, "Compute in bfloat16 on GPUs, and on CPUs where it is faster.",
              advanced=True, group="runtime"),
        Param("compile", "bool", False, "Compile the model first: worthwhile for long runs on a GPU.", advanced=True,
              group="runtime"),
        Param("show_steps", "bool", False, "Log every step, not one line per 30 s.", advanced=True, group="runtime"),
        Param("no_steps", "bool", False, "Do not log steps; evaluations and phases are still logged.",
              advanced=True, group="runtime"),
        Param("keep_ms", "int", 0, "Pause after each step, to leave the device to others.", "ms", 0, 60_000,
              advanced=True, group="runtime"),
    )  # fmt: skip


def own_network() -> Param:
    """Return the parameter of presets that accept a custom network, see own_network.py."""
    return Param("network", "text", "", ("Python code that defines build(classes, channels) and returns a "
                                         "torch.nn.Module: images [N, channels, height, width] to logits [N, "
                                         "classes]. build can also take width and height. It runs only in the "
                                         "training job."), group="model")  # fmt: skip


def distillation() -> tuple[Param, ...]:
    """The parameters of presets that learn after a finished model, see distill.py."""
    return (
        Param("teacher", "str", "", ("A larger model of this preset, as OWNER/NAME v2, whose predictions are used "
                                     "as training targets as well; it "
                                     "must know all classes of the data."), advanced=True, group="optimization"),
        Param("distill", "float", 0.5, "Weight of the teacher predictions; the ground truth has the remaining "
                                       "weight.", "", 0, 1,
              advanced=True, group="optimization"),
        Param("temperature", "float", 4.0, ("Temperature that softens the teacher predictions, so that the student "
                                            "learns similarities between classes. 1: none."),
          "", 1, 100, advanced=True, group="optimization"),
    )  # fmt: skip
