"""The choice of an image in forms of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from django import forms
from django.forms.models import ModelChoiceIterator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from accounts.models import User
from workers.images.models import Image
from workers.images.store import catalog

#: Where programs come from, in the order in which a form offers it.
SOURCES = {
    "preset": gettext_lazy("Platform"),
    Image.Kind.ENGINE: gettext_lazy("Engines built from packages"),
    Image.Kind.SAVED: gettext_lazy("Saved workspaces"),
    Image.Source.LOCAL: gettext_lazy("Containers: already on nodes"),
    Image.Source.HUB: gettext_lazy("Containers: Docker Hub"),
    Image.Source.REGISTRY: gettext_lazy("Containers: other registry"),
}
_ORDER = [str(source) for source in SOURCES]


def source_of(image: Image) -> str:
    """Where an image comes from: a key of `SOURCES`."""
    if image.built_in:
        return "preset"
    if image.is_saved:
        return str(Image.Kind.SAVED)
    return str(image.source if image.kind == Image.Kind.CONTAINER else image.kind)


def framework_of(image: Image) -> str:
    """Python and frameworks of an image as far as known, as "Python 3.11, torch 2.13.0, CUDA 13.0"."""
    contents = image.contents
    labels = (("Python", "python"), ("torch", "torch"), ("CUDA", "cuda"))
    return ", ".join(f"{word} {contents[name]}" for word, name in labels if contents.get(name))


class _BySource(ModelChoiceIterator):
    """The choices, in a group for each source."""

    def __iter__(self) -> Iterator[Any]:
        field: Any = self.field
        if field.empty_label is not None:
            yield "", field.empty_label
        rows = sorted(self.queryset, key=lambda image: _ORDER.index(source_of(image)))
        for source, images in groupby(rows, source_of):
            yield str(SOURCES[source]), [self.choice(image) for image in images]


class ImageChoice(forms.ModelChoiceField):
    """One of the images that a person may use, grouped by where they come from; `offer` says which."""

    iterator = _BySource

    def __init__(self, **more: Any) -> None:
        defaults = {
            "label": pgettext_lazy("container", "Image"),
            "required": False,
            "empty_label": gettext_lazy("Platform engine"),
            "help_text": gettext_lazy("Provides python and other programs."),
        }
        super().__init__(Image.objects.none(), **{**defaults, **more})

    def offer(self, user: User) -> None:
        """Let the field name what this person may use."""
        catalog.create_all()
        self.queryset = Image.objects.usable_by(user).startable().for_choice().order_by("kind", "name", "tag")

    def label_from_instance(self, obj: Image) -> str:
        if obj.built_in:
            return f"{obj} – {catalog.describe(obj)}"
        name = _("%(name)s of %(owner)s") % {"name": obj, "owner": obj.owner}
        framework = framework_of(obj)
        return f"{name} – {framework}" if framework else name
