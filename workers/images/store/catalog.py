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

    about: Any
    requirements: str = ""


BUILT_IN: Mapping[str, BuiltIn] = {
    PLATFORM: BuiltIn(_("The platform's own Python with torch.")),
    JUPYTER: BuiltIn(_("JupyterLab, with the platform's torch in its cells."), "jupyterlab>=4.4,<5\nipykernel>=6.29\n"),
    TENSORBOARD: BuiltIn(_("TensorBoard, for the curves that programs write."), "tensorboard>=2.19,<3\n"),
}


def builtin(name: str) -> Image:
    """The row of an image that the platform brings along, made when it is first asked for.

    Raises:
        KeyError: there is none of this name.
    """
    BUILT_IN[name]
    image, _made = Image.objects.get_or_create(
        built_in=name, defaults={"kind": Image.Kind.ENGINE, "name": name, "visibility": Visibility.PUBLIC}
    )
    return image


def all_there() -> None:
    """Make the rows of all of them."""
    known = set(Image.objects.exclude(built_in="").values_list("built_in", flat=True))
    for name in BUILT_IN:
        if name not in known:
            builtin(name)


def about(image: Image) -> str:
    """What an image is, in words: its owner's, or ours."""
    known = BUILT_IN.get(image.built_in)
    return str(known.about) if known else image.description
