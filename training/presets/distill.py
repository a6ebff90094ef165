"""Knowledge distillation: a network learns the soft answers of a larger one beside the truth (Hinton et al. 2015).

The teacher is a finished model of the same preset. Its network is built anew from model.json, so it computes where the
student does, and it sees what the student sees, brought to its own size and scale of pixel values.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from .run import Refused, Run

LUMA = (0.299, 0.587, 0.114)  # how grey a colour is, as Pillow says


class Teacher:
    """A finished model that answers in the order of the student's classes; it never learns.

    Args:
        file: its model.safetensors, with model.json beside it.
        build: makes its network, still without weights, from model.json.
        classes: names of the student's classes.
        ground: answers about what is no class, which come before the classes.

    Raises:
        Refused: it does not know a class of the student's, or its files do not belong together.
    """

    def __init__(
        self,
        file: Path,
        build: Callable[[Mapping[str, Any]], nn.Module],
        *,
        classes: Sequence[str],
        device: torch.device,
        ground: int = 0,
    ) -> None:
        try:
            metadata = json.loads((file.parent / "model.json").read_text())
            model = build(metadata)
            model.load_state_dict(load_file(file))
            own = [str(entry["name"]) for entry in metadata["classes"]]
            input_spec = metadata["input"]
            self.width, self.height, self.channels = input_spec["width"], input_spec["height"], input_spec["channels"]
            self.blue_first = input_spec.get("order") == "BGR"
            self.tiled = "tile" in input_spec  # it knows things at the images' own size
            self.mean, self.std = (
                torch.tensor(input_spec[name], device=device)[:, None, None] for name in ("mean", "std")
            )
        except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
            raise Refused(f"The teacher cannot be read: {error}. Choose a model that this preset trained.") from error
        missing = sorted(set(classes) - set(own))
        if missing:
            raise Refused(f"The teacher does not know {', '.join(missing)}. Choose one with all classes of the data.")
        self.columns = [*range(ground), *(ground + own.index(name) for name in classes)]
        self.architecture = str(metadata.get("architecture", ""))
        self.model = model.to(device).eval().requires_grad_(requires_grad=False)

    @torch.no_grad()
    def answers(self, x: Tensor, mean: Any, std: Any, *, student_size: tuple[int, int]) -> Tensor:
        """Return logits [n, classes, …] for the input of the student.

        Args:
            x: normalised images [n, C, H, W], or windows of them.
            mean, std: that the student's images were normalised by; a number or one for each channel.
            student_size: width and height of the student's full input; where both use tiles, nothing is scaled.
        """
        pixels = x.float() * _column(std, x) + _column(mean, x)
        if pixels.shape[1] != self.channels:
            luma = pixels.new_tensor(LUMA)[:, None, None]
            pixels = pixels.expand(-1, 3, -1, -1) if self.channels == 3 else (pixels * luma).sum(1, keepdim=True)
        size = round(x.shape[-2] * self.height / student_size[1]), round(x.shape[-1] * self.width / student_size[0])
        if self.tiled:
            size = int(x.shape[-2]), int(x.shape[-1])
        elif (x.shape[-1], x.shape[-2]) != student_size:  # a window: such networks take any size that halves five times
            size = max(32, 32 * round(size[0] / 32)), max(32, 32 * round(size[1] / 32))
        if size != tuple(x.shape[-2:]):
            pixels = F.interpolate(pixels, size, mode="bilinear", align_corners=False, antialias=True)
        normalised = (pixels - self.mean) / self.std
        return torch.as_tensor(self.model(normalised.flip(1) if self.blue_first else normalised)).float()[
            :, self.columns
        ]


def chosen(
    run: Run,
    params: Mapping[str, Any],
    build: Callable[[Mapping[str, Any]], nn.Module],
    *,
    classes: Sequence[str],
    device: torch.device,
    ground: int = 0,
) -> Teacher | None:
    """The teacher that the parameters name; None where they name none."""
    named = str(params.get("teacher", ""))  # presets that build on another one may have no teacher
    file = run.teacher or (Path(named) if named else None)
    return Teacher(file, build, classes=classes, device=device, ground=ground) if file else None


def soft_loss(student: Tensor, teacher: Tensor, temperature: float) -> Tensor:
    """How far the student's softened answers are from the teacher's: T² · KL(teacher ‖ student), the mean of all.

    Args:
        student, teacher: logits [n, classes, …].
        temperature: T, which both are divided by; the factor T² keeps the gradients of T's size.
    """
    soft = F.log_softmax(teacher / temperature, 1)
    apart = F.kl_div(F.log_softmax(student / temperature, 1), soft, reduction="none", log_target=True).sum(1)
    return temperature**2 * apart.mean()


def _column(value: Any, x: Tensor) -> Tensor:
    return torch.as_tensor(value, dtype=torch.float32, device=x.device).reshape(-1, 1, 1)
