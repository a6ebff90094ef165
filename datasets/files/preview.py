"""What of a file can be looked at on a page, as text or as a picture and never as a page of its own."""

from __future__ import annotations

import mimetypes
import os
from dataclasses import dataclass

from aiplatform.lib import trees
from aiplatform.lib.downloads import SHOWN
from datasets.files import notebooks
from datasets.files.paths import Location, refusals

HEAD = 256 << 10  # bytes of a text that are shown
MAX_NOTEBOOK_BYTES = 16 << 20
MAX_IMAGE_BYTES = 50 << 20
PICTURE, TEXT, NOTEBOOK, NOTHING = "picture", "text", "notebook", "nothing"


@dataclass(frozen=True)
class Preview:
    kind: str = NOTHING
    text: str = ""
    cut: bool = False
    notebook: notebooks.Notebook | None = None


def open_file(location: Location) -> int:
    """Return a descriptor of the file at a location, for reading.

    Raises:
        NotFound, Invalid, Closed: nothing there, no regular file, or kept from the platform.
    """
    with refusals(), trees.opened(location.home, location.inside[:-1]) as folder:
        return trees.open_file(folder, location.inside[-1] if location.inside else b"")


def build(location: Location) -> Preview:
    """Build the preview of a file.

    Raises:
        DomainError: see `open_file`.
    """
    kind = mimetypes.guess_type(location.name)[0] or ""
    with os.fdopen(open_file(location), "rb") as file, refusals():
        size = os.fstat(file.fileno()).st_size
        if kind.startswith("image/") and kind in SHOWN:
            return Preview(PICTURE if size <= MAX_IMAGE_BYTES else NOTHING)
        if location.name.lower().endswith(".ipynb") and size <= MAX_NOTEBOOK_BYTES:
            try:
                return Preview(NOTEBOOK, notebook=notebooks.read(file.read(MAX_NOTEBOOK_BYTES)))
            except notebooks.NoNotebook:
                file.seek(0)
        head = file.read(HEAD)
    if b"\0" in head:
        return Preview()
    return Preview(TEXT, head.decode("utf-8", "replace"), cut=size > len(head))
