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

LEAST = 0.1  # of the network's tensors; fewer agree by chance
WHOLE = 0.85  # of each part of the network that is taken at all; networks of one family share less, at other depths
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


def begin(trainer: Trainer) -> None:
    """Take the weights that were chosen, if any; a training that is gone on with has learned from them already."""
    run, chosen = trainer.run, str(trainer.params["weights"])
    file = run.weights or (Path(chosen) if chosen else None)
    if file is None or checkpoints.newest(run.resume_from, run.checkpoint_dir):
        return
    task = trainer.task
    taken = start(task.model, file, heads=task.heads, classes=[str(entry["name"]) for entry in task.version.classes])
    trainer.at.weights_taken, trainer.at.weights_of = taken.tensors, taken.of
    trainer.say(f"begins with {taken}, from {chosen or file.name}")


def start(model: nn.Module, path: Path, *, heads: Sequence[str] = (), classes: Sequence[str] = ()) -> Taken:
    """Let `model` begin with the weights in `path`.

    Args:
        path: .safetensors, or what torch.save wrote; a model.json beside it says which classes it tells apart.
        heads: how names of tensors begin that belong to the classes.
        classes: names of the model's classes, in order.

    Raises:
        Refused: the file holds no weights, holds more than weights, or those of another network.
    """
    own = model.state_dict()
    found = fitting(own, read(path))
    known = classes_of(path)
    other = known is not None and known != list(classes)
    head = [key for key in found if other and key.startswith(tuple(heads))]
    parts = {_part(key) for key in found}
    alike = sum(_part(key) in parts for key in own)
    if len(found) < max(LEAST * len(own), WHOLE * alike):
        raise Refused(
            f"Only {len(found)} of the network's {len(own)} tensors are in {path.name}: it is of another network. "
            "Choose its architecture, and the width it was trained with."
        )
    model.load_state_dict({key: value for key, value in found.items() if key not in head}, strict=False)
    return Taken(len(found) - len(head), len(own), bool(head))


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name; of a checkpoint, those of its model.

    Raises:
        Refused: it cannot be read, would run code, or holds no tensors.
    """
    try:
        found: Any = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    except Exception as error:  # both readers raise whatever they meet in a broken file
        first = (str(error).splitlines() or [""])[0]
        raise Refused(
            f"{path.name} cannot be read as weights. Save them as .safetensors, or by torch.save(model.state_dict(), …)"
            f": a file that holds more than tensors is not opened. {first}"
        ) from error
    for name in NESTED:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
    tensors = {key: value for key, value in dict(found).items() if isinstance(value, Tensor)} if _named(found) else {}
    if not tensors:
        raise Refused(f"{path.name} holds no weights by name. Save model.state_dict().")
    return tensors


def fitting(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of `given` that `own` has in the same shape, under the names of `own`."""
    best: dict[str, Tensor] = {}
    for theirs in _beginnings(given):
        for ours in _beginnings(own):
            renamed = ((ours + key.removeprefix(theirs), key) for key in given if key.startswith(theirs))
            found = {new: given[key] for new, key in renamed if new in own and own[new].shape == given[key].shape}
            if len(found) > len(best):
                best = found
    return best


def classes_of(path: Path) -> list[str] | None:
    """Names of the classes that the model of this file tells apart; None where nothing says so."""
    try:
        about = json.loads((path.parent / "model.json").read_text())
        return [str(entry["name"]) for entry in about["classes"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _part(name: str) -> str:
    return name.split(".", 1)[0]


def _named(found: Any) -> bool:
    return isinstance(found, Mapping) and all(isinstance(key, str) for key in found)


def _beginnings(names: Iterable[str]) -> list[str]:
    """Nothing first, then what stands before the first dot of any name."""
    return ["", *dict.fromkeys(f"{name.split('.', 1)[0]}." for name in names if "." in name)]
