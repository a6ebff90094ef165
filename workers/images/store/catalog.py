"""Images that the platform brings along. They are built when somebody uses them for the first time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _

from workers.images.models import Image, Visibility

PLATFORM, JUPYTER, TENSORBOARD = "platform", "jupyter", "tensorboard"


@dataclass(frozen=True)
class BuiltIn:
    """An engine of the platform: what it is for, and what it adds to the platform's own packages."""

    description: Any
    requirements: str = ""


BUILT_IN: Mapping[str, BuiltIn] = {
    PLATFORM: BuiltIn(_("Python of the platform with PyTorch.")),
    JUPYTER: BuiltIn(
        _("JupyterLab, with PyTorch of the platform in its notebooks."), "jupyterlab>=4.4,<5\nipykernel>=6.29\n"
    ),
    TENSORBOARD: BuiltIn(_("TensorBoard, for event files written by programs."), "tensorboard>=2.19,<3\n"),
}


def builtin(name: str) -> Image:
    """The row of a built-in image, created on first use.

    Raises:
        KeyError: there is none of this name.
    """
    BUILT_IN[name]
    image, _made = Image.objects.get_or_create(
        built_in=name, defaults={"kind": Image.Kind.ENGINE, "name": name, "visibility": Visibility.PUBLIC}
    )
    return image


def create_all() -> None:
    """Create the missing rows of built-in images."""
    existing = set(Image.objects.exclude(built_in="").values_list("built_in", flat=True))
    for name in BUILT_IN:
        if name not in existing:
            builtin(name)


def describe(image: Image) -> str:
    """Description of an image: its owner's, or ours."""
    built_in = BUILT_IN.get(image.built_in)
    return str(built_in.description) if built_in else image.description
