"""Descriptions of presets and their parameters, as data. Pages read them as the presets do, so no torch here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .run import Refused

Value = bool | int | float | str


@dataclass(frozen=True)
class Param:
    """A parameter of a preset. Bounds count for numbers, `choices` for words; "text" is words in several lines."""

    name: str
    kind: Literal["int", "float", "bool", "str", "text"]
    default: Value
    help: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    advanced: bool = False

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

    `task` is the name of one of training.catalog.task_kinds.
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

    @property
    def module(self) -> str:
        return f"presets.{self.name}"

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
        Param("tile", "int", 0, "Look at tiles of so many pixels at the images' own size, in learning and afterwards: "
              "for small things on large images. 0: at whole images.", "px", 0, 2048),
        Param("tile_overlap", "float", 0.2, "Share of a side that neighbouring tiles have in common: as large as most "
              "objects, so that one tile sees each of them whole.", "", 0, 0.75, advanced=True),
    )  # fmt: skip


def multi_scale() -> Param:
    """The parameter of presets that can learn at several sizes of the input, see warp.py."""
    return Param("multi_scale", "float", 0.0, "Each batch is learned at a size of the input of its own, smaller or "
                 "larger by up to this share, in steps of 32 pixels.", "", 0, 0.5, advanced=True)  # fmt: skip


def common(
    *, batch: int, rate: float, decay: float, ema: float, warmup: float, anneal: str, resize: str = "stretch"
) -> tuple[Param, ...]:
    """The parameters every preset has, with the task's own defaults."""
    return (
        Param("budget_minutes", "float", 10.0, "Training time; preparing data, evaluating and exporting come on top. "
              "0: no limit, epochs or steps decide.", "min", 0, 100_000),
        Param("epochs", "float", 0.0, "Stop after so many passes over the data. 0: the budget decides.", "", 0, 1e6),
        Param("steps", "int", 0, "Stop after so many optimizer steps. 0: the budget decides.", "", 0, 1e9,
              advanced=True),
        Param("batch_size", "int", batch, "Images per optimizer step, over all devices together.", "images", 1, 65536),
        Param("lr", "float", rate, "Highest learning rate, per optimizer step.", "", 1e-7, 10),
        Param("weight_decay", "float", decay, "Pull of the weights towards zero.", "", 0, 1, advanced=True),
        Param("warmup", "float", warmup, "Share of the training in which the learning rate rises.", "", 0, 0.9,
              advanced=True),
        Param("anneal", "str", anneal, "How the learning rate falls: with the time, or (plateau) to a tenth, twice, "
              "each time nothing got better for some points, and then the training ends.", "",
              choices=("cosine", "linear", "plateau"), advanced=True),
        Param("patience", "int", 0, "Stop after so many scored points without a better one, even before the budget is "
              "used. 0: never; with the decline plateau 5.", "", 0, 1000),
        Param("accumulate", "int", 1, "Learn from each batch in so many parts, one after the other: the same result "
              "for less memory, batch norms aside. 0: as few as fit into the card, or the share of it.", "", 0, 1024,
              advanced=True),
        Param("ema", "float", ema, "Weight of the past in the averaged model that is evaluated and exported. "
              "0: no averaging.", "", 0, 0.99999, advanced=True),
        Param("weights", "str", "", "What to start from: a model as OWNER/NAME v2, or a .safetensors or .pth file in "
              "your home. Tensors are taken where name and shape agree. Of a model made here the layers of other "
              "classes begin anew; of a file as many classes count as the same."),
        Param("train_splits", "str", "train", "Splits to learn from, separated by commas."),
        Param("eval_split", "str", "val", "Split to score on; where it is missing or learned from: test, "
              "else a fixed tenth of the training images is held out."),
        Param("folds", "int", 0, "Cross-validation: the images to learn from are divided into so many parts, and each "
              "is scored on once by a training that learned from the others. 0: none.", "", 0, 20, advanced=True),
        Param("fold", "int", 0, "The part to score on. 0: each once, in as many trainings.", "", 0, 20, advanced=True),
        Param("group_by", "str", "", "Images that belong together, as photographs of one patient, are never divided "
              "between learning and scoring, neither by folds nor by the tenth held out. folder: those of one folder; "
              "else a regular expression, and what it finds in the path names the group, as patient\\d+.",
              advanced=True),
        Param("width", "int", 0, "Input width. 0: from the dataset.", "px", 0, 2048),
        Param("height", "int", 0, "Input height. 0: from the dataset.", "px", 0, 2048),
        Param("resize", "str", resize, "How images of another shape are made to fit.", "",
              choices=(*(("auto",) if resize == "auto" else ()), "stretch", "letterbox"), advanced=True),
        Param("flip", "float", 0.5, "Share of training images mirrored left to right.", "", 0, 1),
        Param("vertical_flip", "float", 0.0, "Share of training images mirrored top to bottom: right where up "
              "has no meaning, as in microscopy and aerial images.", "", 0, 1),
        Param("seed", "int", 0, "Same seed, same data, same machine: same model.", "", 0, 2**31 - 1),
        Param("checkpoint_minutes", "float", 5.0, "Longest time between two checkpoints.", "min", 0.0, 1440,
              advanced=True),
        Param("eval_share", "float", 0.05, "Share of the time that scoring along the way may take: at least four "
              "times before the end, where time is short on a sample of the images. 0: at the end only.", "", 0, 1,
              advanced=True),
        Param("amp", "bool", True, "Compute in bfloat16 on GPUs, and on processors where that is faster.",
              advanced=True),
        Param("compile", "bool", False, "Compile the model first: pays on long runs on a GPU.", advanced=True),
        Param("show_steps", "bool", False, "Print every step to the log, not one line each 30 s.", advanced=True),
        Param("no_steps", "bool", False, "Print no steps to the log at all; scores and phases still are.",
              advanced=True),
        Param("keep_ms", "int", 0, "Wait after each step, to leave the device to others.", "ms", 0, 60_000,
              advanced=True),
    )  # fmt: skip


def own_network() -> Param:
    """Return the parameter of presets that accept a custom network, see own_network.py."""
    return Param("network", "text", "", "Python that defines build(classes, channels) and returns a torch.nn.Module: "
                 "images [N, channels, height, width] to logits [N, classes]. build may ask for width and height too. "
                 "It is run in the training alone.")  # fmt: skip


def distillation() -> tuple[Param, ...]:
    """The parameters of presets that learn after a finished model, see distill.py."""
    return (
        Param("teacher", "str", "", "A larger model of this preset, as OWNER/NAME v2, whose answers are learned as "
              "well; it must know all classes of the data.", advanced=True),
        Param("distill", "float", 0.5, "Weight of the teacher's answers; the truth has the rest.", "", 0, 1,
              advanced=True),
        Param("temperature", "float", 4.0, "How much the teacher's answers are softened, so that the student sees "
              "which classes are alike. 1: not at all.", "", 1, 100, advanced=True),
    )  # fmt: skip
