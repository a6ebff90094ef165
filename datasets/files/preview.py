"""What of a file can be looked at on a page, as text or as a picture and never as a page of its own."""

from __future__ import annotations

import mimetypes
import os
from dataclasses import dataclass

from aiplatform.lib import trees
from aiplatform.lib.downloads import SHOWN
from datasets.files import notebooks
from datasets.files.paths import Place, refusals

HEAD = 256 << 10  # bytes of a text that are shown
MOST_NOTEBOOK = 16 << 20
MOST_PICTURE = 50 << 20
PICTURE, TEXT, NOTEBOOK, NOTHING = "picture", "text", "notebook", "nothing"


@dataclass(frozen=True)
class Preview:
    kind: str = NOTHING
    text: str = ""
    cut: bool = False
    notebook: notebooks.Notebook | None = None


def opened(place: Place) -> int:
    """A descriptor of the file at a place, for reading.

    Raises:
        NotFound, Invalid, Closed: nothing there, no regular file, or kept from the platform.
    """
    with refusals(), trees.opened(place.home, place.inside[:-1]) as folder:
        return trees.open_file(folder, place.inside[-1] if place.inside else b"")


def of(place: Place) -> Preview:
    """What can be shown of a file.

    Raises:
        DomainError: see `opened`.
    """
    kind = mimetypes.guess_type(place.name)[0] or ""
    with os.fdopen(opened(place), "rb") as file, refusals():
        size = os.fstat(file.fileno()).st_size
        if kind.startswith("image/") and kind in SHOWN:
            return Preview(PICTURE if size <= MOST_PICTURE else NOTHING)
        if place.name.lower().endswith(".ipynb") and size <= MOST_NOTEBOOK:
            try:
                return Preview(NOTEBOOK, notebook=notebooks.read(file.read(MOST_NOTEBOOK)))
            except notebooks.NoNotebook:
                file.seek(0)
        head = file.read(HEAD)
    if b"\0" in head:
        return Preview()
    return Preview(TEXT, head.decode("utf-8", "replace"), cut=size > len(head))
