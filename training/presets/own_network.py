"""A network of one's own for the classifiers: a few lines of Python that define `build(classes, channels)`.

The text comes with the job's parameters and is run here alone, in the job's sandbox. `build` returns a torch module
that turns images [N, channels, height, width] into logits [N, classes]; it may ask for `width` and `height` as well.
"""

from __future__ import annotations

import copy
import inspect
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from . import phases
from .net import Net
from .nets import Recipe
from .run import FAILED, Refused, Run

NAME = "own"  # among the architectures
FILE = "network.py"  # what the text is called in a traceback
MAX_LENGTH = 300  # characters that are told of an error
MIN_TIMEOUT_S, LOOK_S = 60.0, 0.5  # that a network is given at least to be made; between looks at the time
RECIPE = Recipe("adamw", 1e-3, 96, (128, 64))


class Own(Net):
    """A custom network; each child with weights is a stage, the last one produces the class logits."""

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


@contextmanager
def watched(run: Run, params: dict[str, Any], *, part: float) -> Iterator[None]:
    """Report where a custom network fails, and end the program if the network does not return.

    Args:
        part: of the budget without a step or a scored batch after which it is ended; pauses do not count. Without a
            budget it never is.
    """
    over, limit_s = threading.Event(), max(MIN_TIMEOUT_S, params["budget_minutes"] * 60 * part)
    if params["architecture"] == NAME and params["budget_minutes"]:
        threading.Thread(target=_watch, args=(over, run, limit_s), daemon=True).start()
    try:
        yield
    except (Refused, torch.OutOfMemoryError):
        raise
    except (Exception, SystemExit) as error:  # whatever somebody's program raises
        if params["architecture"] != NAME or not _lines(traceback.extract_tb(error.__traceback__)):
            raise
        raise Refused(f"Your network fails. {_locate_error(error)}") from error
    finally:
        over.set()


def _watch(over: threading.Event, run: Run, limit_s: float) -> None:
    used_s, beats = 0.0, phases.beats()
    lines: list[int] = []
    while used_s < limit_s or not lines:  # what comes before and after it may take longer
        if over.wait(LOOK_S):
            return
        used_s += 0.0 if run.requested() == "pause" else LOOK_S
        if phases.beats() != beats:
            used_s, beats = 0.0, phases.beats()
        lines = [line for top in sys._current_frames().values() for line in _lines(traceback.extract_stack(top))]
    message = f"Your network did not come back within {limit_s / 60:.1f} minutes; it is in line {lines[-1]}.\n"
    os.write(2, message.encode())  # whatever the text made of sys.stderr
    os._exit(FAILED)


def make(text: str, *, classes: int, channels: int, width: int, height: int) -> Own:
    """Run the text and build its network, with fresh weights; a trial run checks its output.

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
    except (Exception, SystemExit) as error:  # whatever somebody's program raises
        raise Refused(f"Your network cannot be made. {_locate_error(error)}") from error
    if not isinstance(net, nn.Module):
        raise Refused(f"build returned a {type(net).__name__}. Let it return a torch.nn.Module.")
    if not any(p.requires_grad for p in net.parameters()):
        raise Refused("Your network has no weights that learn. Give it a layer with some.")
    shape = (2, channels, height, width)
    was_training = net.training
    with torch.no_grad():  # and not inference_mode: layers that wait for their first image make their weights here
        _try(net.eval(), classes=classes, shape=shape)
    net.train(was_training)
    try:
        apart = copy.deepcopy(net)
    except Exception as error:
        raise Refused(f"Your network cannot be copied, as its average must be: {_describe_error(error)}") from error
    with torch.random.fork_rng(devices=[]):  # what is drawn later does not depend on this
        if not _try(apart.train(), classes=classes, shape=shape).requires_grad:
            raise Refused("Nothing is learned from the answers of your network: they do not depend on its weights.")
    return Own(net)


def _try(net: nn.Module, *, classes: int, shape: tuple[int, int, int, int]) -> Tensor:
    """Return the output for blank images, in training mode if the network is already in it."""
    requested = "×".join(map(str, shape))
    try:
        answer = net(torch.zeros(shape))
    except (Exception, SystemExit) as error:  # whatever somebody's program raises
        raise Refused(f"Your network fails on images of {requested}. {_locate_error(error)}") from error
    if not isinstance(answer, Tensor):
        raise Refused(f"Your network answers a {type(answer).__name__}. Let it answer one tensor of logits.")
    if tuple(answer.shape) != (shape[0], classes):
        returned = "×".join(map(str, answer.shape)) or "one number"
        raise Refused(f"Your network answers {returned} to images of {requested}. Let it answer {shape[0]}×{classes}: "
                      "a logit for each image and class.")  # fmt: skip
    return answer


def _locate_error(error: BaseException) -> str:
    """Return the line of the text at which the error occurred, and the error."""
    lines = _lines(traceback.extract_tb(error.__traceback__))
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return f"Line {line}: {_describe_error(error)}" if line else _describe_error(error)


def _describe_error(error: BaseException) -> str:
    """Return the error in one line, even if the error cannot format itself."""
    lines = traceback.format_exception_only(error)
    return lines[-1 if isinstance(error, SyntaxError) else 0].splitlines()[0][:MAX_LENGTH]


def _lines(frames: traceback.StackSummary) -> list[int]:
    """Lines of the text among those that are being run, the innermost last."""
    return [frame.lineno or 0 for frame in frames if frame.filename == FILE]
