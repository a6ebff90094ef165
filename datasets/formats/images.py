"""Read images without annotations. Folder names are kept; train/val/test folders become splits."""

from __future__ import annotations

from datasets.formats.listing import Listing, version_paths
from datasets.formats.neutral import NONE, ImageItem, Parsed, split_of
from datasets.formats.problems import natural


def read(listing: Listing) -> Parsed:
    """Every image of the folder, by name, with no class and no shape."""
    parsed = Parsed(format="images", task=NONE)
    parsed.images = list(unannotated(listing).values())
    return parsed


def unannotated(listing: Listing) -> dict[str, ImageItem]:
    """Every image of the folder by its path, in natural order, not annotated yet."""
    paths = version_paths(listing.images)
    return {
        source: ImageItem(source, paths[source], split=split_in(source), annotated=False)
        for source in sorted(listing.images, key=natural)
    }


def split_in(path: str) -> str:
    """The split a path names by one of its folders, else ""."""
    for part in path.split("/")[:-1]:
        if split := split_of(part):
            return split
    return ""
