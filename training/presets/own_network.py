"""A network of one's own for the classifiers: a few lines of Python that define `build(classes, channels)`.

The text comes with the job's parameters and is run here alone, in the job's sandbox. `build` returns a torch module
that turns images [N, channels, height, width] into logits [N, classes]; it may ask for `width` and `height` as well.
"""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from types import ModuleType

import torch
from torch import Tensor, nn

from .net import Net
from .nets import Recipe
from .run import Refused

NAME = "own"  # among the architectures
FILE = "network.py"  # what the text is called in a traceback
RECIPE = Recipe("adamw", 1e-3, 96, (128, 64))


class Own(Net):
    """Somebody's own network; each of its parts with weights is a stage, the last one answers for the classes."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def stages(self) -> list[list[nn.Module]]:
        parts = [part for part in self.net.children() if any(True for _ in part.parameters())]
        return [[part] for part in parts[:-1]]

    @property
    def head(self) -> str:
        """How the names of the last layer's tensors begin."""
        *_, last = self.net.named_parameters()
        return f"net.{last[0].rpartition('.')[0]}."

    def forward(self, x: Tensor) -> Tensor:
        return torch.as_tensor(self.net(x))


def make(text: str, *, classes: int, channels: int, width: int, height: int) -> Own:
    """Run the text and make its network, with fresh weights; a trial shows that it answers as it should.

    Raises:
        Refused: the text fails, makes no network, or one that answers something else; the sentence names the line.
    """
    offered = {"classes": classes, "channels": channels, "width": width, "height": height}
    linecache.cache[FILE] = (len(text), None, text.splitlines(keepends=True), FILE)
    module = ModuleType("network")
    sys.modules[module.__name__] = module  # where classes of the text look for their module
    try:
        exec(compile(text, FILE, "exec"), vars(module))  # noqa: S102  what its owner submitted, in their sandbox
        names = inspect.signature(module.build).parameters
        net = module.build(**{name: value for name, value in offered.items() if name in names})
    except Exception as error:  # whatever somebody's program raises
        raise Refused(f"Your network cannot be made. {_told(error)}") from error
    if not isinstance(net, nn.Module):
        raise Refused(f"build returned a {type(net).__name__}. Let it return a torch.nn.Module.")
    if not any(p.requires_grad for p in net.parameters()):
        raise Refused("Your network has no weights that learn. Give it a layer with some.")
    _try(net, classes=classes, given=(2, channels, height, width))
    return Own(net)


@torch.no_grad()  # and not inference_mode: layers that wait for their first image make their weights here
def _try(net: nn.Module, *, classes: int, given: tuple[int, int, int, int]) -> None:
    was_training, asked = net.training, "×".join(map(str, given))
    try:
        answer = net.eval()(torch.zeros(given))
    except Exception as error:  # whatever somebody's program raises
        raise Refused(f"Your network fails on images of {asked}. {_told(error)}") from error
    net.train(was_training)
    if not isinstance(answer, Tensor):
        raise Refused(f"Your network answers a {type(answer).__name__}. Let it answer one tensor of logits.")
    if tuple(answer.shape) != (given[0], classes):
        said = "×".join(map(str, answer.shape)) or "one number"
        raise Refused(f"Your network answers {said} to images of {asked}. Let it answer {given[0]}×{classes}: a logit "
                      "for each image and class.")  # fmt: skip


def _told(error: Exception) -> str:
    """The line of the text where it happened, and what happened."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    return f"Line {line}: {said}" if line else said
