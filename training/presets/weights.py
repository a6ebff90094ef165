"""Weights to start from: those of a model made here, or of a file of one's own.

Tensors are matched by name and shape. What one of the two networks has in front of all names (`model.`, `backbone.`)
is passed over, so a whole detector lends its backbone to a segmenter. The layers that answer for the classes stay
fresh where the classes are others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from . import checkpoints
from .run import Refused

if TYPE_CHECKING:
    from .trainer import Trainer

MIN_TENSOR_SHARE = 0.1  # of the network's tensors; fewer agree by chance
MIN_PART_SHARE = (
    0.85  # of each part of the network that is taken at all; networks of one family share less, at other depths
)
NESTED = ("state_dict", "model_state_dict", "model", "average")  # where other tools' checkpoints keep the weights


@dataclass(frozen=True)
class Taken:
    """How many of a network's tensors were taken, and whether the layers of the classes were left out."""

    tensors: int
    of: int
    fresh_head: bool

    def __str__(self) -> str:
        head = ", the classes are others: their layers begin anew" if self.fresh_head else ""
        return f"{self.tensors} of {self.of} tensors{head}"


def load_initial(trainer: Trainer) -> None:
    """Load the chosen initial weights, if any; a resumed training has already learned from them."""
    run, chosen = trainer.run, str(trainer.params["weights"])
    file = run.weights or (Path(chosen) if chosen else None)
    if file is None or checkpoints.newest(run.resume_from, run.checkpoint_dir):
        return
    task = trainer.task
    taken = start(task.model, file, heads=task.heads, classes=[str(entry["name"]) for entry in task.version.classes])
    trainer.at.weights_taken, trainer.at.weights_of = taken.tensors, taken.of
    trainer.log_line(f"begins with {taken}, from {chosen or file.name}")


def start(model: nn.Module, path: Path, *, heads: Sequence[str] = (), classes: Sequence[str] = ()) -> Taken:
    """Initialize `model` with the weights in `path`.

    Args:
        path: .safetensors, or what torch.save wrote; a model.json beside it says which classes it tells apart.
        heads: how names of tensors begin that belong to the classes.
        classes: names of the model's classes, in order.

    Raises:
        Refused: the file holds no weights, holds more than weights, or those of another network.
    """
    own = model.state_dict()
    tensors = matching(own, read(path))
    file_classes = classes_of(path)
    other = file_classes is not None and file_classes != list(classes)
    head = [key for key in tensors if other and key.startswith(tuple(heads))]
    parts = {_part(key) for key in tensors}
    alike = sum(_part(key) in parts for key in own)
    if len(tensors) < max(MIN_TENSOR_SHARE * len(own), MIN_PART_SHARE * alike):
        raise Refused(
            f"Only {len(tensors)} of the network's {len(own)} tensors are in {path.name}: it is of another network. "
            "Choose its architecture, and the width it was trained with."
        )
    model.load_state_dict({key: value for key, value in tensors.items() if key not in head}, strict=False)
    return Taken(len(tensors) - len(head), len(own), bool(head))


def read(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a file by name; for a checkpoint, those of its model.

    Raises:
        Refused: it cannot be read, would run code, or holds no tensors.
    """
    try:
        content: Any = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    except Exception as error:  # both readers raise whatever they meet in a broken file
        first = (str(error).splitlines() or [""])[0]
        raise Refused(
            f"{path.name} cannot be read as weights. Save them as .safetensors, or by torch.save(model.state_dict(), …)"
            f": a file that holds more than tensors is not opened. {first}"
        ) from error
    for name in NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    tensors = (
        {key: value for key, value in dict(content).items() if isinstance(value, Tensor)} if _named(content) else {}
    )
    if not tensors:
        raise Refused(f"{path.name} holds no weights by name. Save model.state_dict().")
    return tensors


def matching(own: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the `tensors` that `own` has in the same shape, under the names of `own`."""
    best: dict[str, Tensor] = {}
    for theirs in _beginnings(tensors):
        for ours in _beginnings(own):
            renamed = ((ours + key.removeprefix(theirs), key) for key in tensors if key.startswith(theirs))
            matches = {new: tensors[key] for new, key in renamed if new in own and own[new].shape == tensors[key].shape}
            if len(matches) > len(best):
                best = matches
    return best


def classes_of(path: Path) -> list[str] | None:
    """Return the class names of the model in this file; None if they are not recorded."""
    try:
        metadata = json.loads((path.parent / "model.json").read_text())
        return [str(entry["name"]) for entry in metadata["classes"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _part(name: str) -> str:
    return name.split(".", 1)[0]


def _named(content: Any) -> bool:
    return isinstance(content, Mapping) and all(isinstance(key, str) for key in content)


def _beginnings(names: Iterable[str]) -> list[str]:
    """Return "" first, then the prefixes before the first dot of any name."""
    return ["", *dict.fromkeys(f"{name.split('.', 1)[0]}." for name in names if "." in name)]
