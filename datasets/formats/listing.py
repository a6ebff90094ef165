"""List the files of a source folder, and find the images that annotation files name."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from aiplatform.lib.archive_names import is_junk
from aiplatform.lib.files import walk_beneath
from datasets.formats import mask_pairs
from datasets.formats.file_kinds import IMAGE_SUFFIXES
from datasets.formats.nearness import nearest
from datasets.formats.neutral import split_of


@dataclass(slots=True)
class Listing:
    """All regular files below `root`, without the folder that only wraps everything.

    Args:
        root: the folder paths are relative to; wrapping folders are already stripped.
        images: pictures; masks are not among them.
        masks: mask image → its picture, "" where that is not there.
        litter: files of operating systems, which are passed over.
        tick: called now and then by readers that take long.
    """

    root: Path
    files: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    masks: dict[str, str] = field(default_factory=dict)
    litter: int = 0
    tick: Callable[[], None] = lambda: None
    _cache: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path, *, max_files: int | None = None) -> Listing:
        """List the files below `root`.

        Raises:
            OutsideRoot: more than `max_files` files.
        """
        found = list(walk_beneath(root, max_files=max_files))
        names = [name for name in found if not is_junk(name.split("/"))]
        litter = len(found) - len(names)
        while names and (wrapper := _only_folder(names)):
            root = root / wrapper
            names = [name[len(wrapper) + 1 :] for name in names]
        images = [name for name in names if PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES]
        masks = mask_pairs.find(root, images)
        return cls(root, names, [name for name in images if name not in masks], masks, litter)

    def with_suffix(self, suffix: str) -> list[str]:
        return [name for name in self.files if name.lower().endswith(suffix)]

    def find_image(self, name: str, *, near: str = "", split: str = "") -> str | None:
        """The image file an annotation means by `name`; None where none has it. Of several, the nearest."""
        found = self.find_images(name, near=near, split=split)
        return nearest(found, near) if found else None

    def find_images(self, name: str, *, near: str = "", split: str = "") -> list[str]:
        """The image files an annotation may mean by `name`.

        Tried in order: beside the annotation file (`near`: its folder), as given, below any folder, then by
        its last part; of several those of the file's split.
        """
        wanted = unicodedata.normalize("NFC", name.replace("\\", "/")).lstrip("./")
        for guess in (f"{near}/{wanted}" if near else wanted, wanted):
            if guess in self._by("path"):
                return self._by("path")[guess]
        candidates = self._by("name").get(wanted.rpartition("/")[2], [])
        fitting = [path for path in candidates if path.endswith("/" + wanted)] or candidates
        if len(fitting) > 1 and split:
            fitting = [path for path in fitting if split in map(split_of, path.split("/")[:-1])] or fitting
        return fitting

    def find_stem(self, stem: str) -> list[str]:
        """Images called `stem`, whatever their folder and ending."""
        return self._by("stem").get(unicodedata.normalize("NFC", stem), [])

    def _by(self, what: str) -> dict[str, list[str]]:
        if what not in self._cache:
            index: dict[str, list[str]] = defaultdict(list)
            for path in self.images:
                pure = PurePosixPath(path)
                key = {"path": path, "name": pure.name, "stem": pure.stem}[what]
                index[unicodedata.normalize("NFC", key)].append(path)
            self._cache[what] = dict(index)
        return self._cache[what]


def _only_folder(files: list[str]) -> str:
    """Return the folder all files are in, when it has no meaning of its own."""
    first, slash, _rest = files[0].partition("/")
    if not slash or not all(name.startswith(first + "/") for name in files):
        return ""
    below = [name[len(first) + 1 :] for name in files]
    if split_of(first) and not any(split_of(part) for name in below for part in name.split("/")[:-1]):
        return ""  # everything is of this split
    # A single folder of images could be a class: keep it when only files lie in it.
    return first if any("/" in name for name in below) or not _all_images(files) else ""


def _all_images(files: list[str]) -> bool:
    return all(PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES for name in files)


def version_paths(sources: list[str]) -> dict[str, str]:
    """Names below `images/` for source paths: the folders that all of them share are dropped."""
    if not sources:
        return {}
    shared = sources[0].split("/")[:-1]
    for source in sources:
        parts = source.split("/")[:-1]
        while shared and parts[: len(shared)] != shared:
            shared.pop()
        if not shared:
            break
    cut = sum(len(part) + 1 for part in shared)
    return {source: source[cut:] for source in sources}
