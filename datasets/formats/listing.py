"""List the files of a source folder, and find the images that annotation files name."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from aiplatform.lib.archive_names import is_junk
from aiplatform.lib.files import walk_beneath
from aiplatform.lib.wording import Message, Worded, message
from datasets.formats import encodings, image_names, mask_pairs
from datasets.formats.file_kinds import IMAGE_SUFFIXES
from datasets.formats.image_names import Match
from datasets.formats.nearness import all_nearest
from datasets.formats.neutral import split_of
from datasets.formats.problems import Problems

_TEXT_SUFFIXES = {".txt", ".xml", ".json", ".csv", ".yaml", ".yml", ".names", ".data", ".tsv"}
_CONTEXT_FILE_BYTES = 64 << 10


@dataclass(slots=True)
class Listing:
    """All regular files below `root`, without the folder that only wraps everything.

    Args:
        root: the folder paths are relative to; wrapping folders are already stripped.
        images: pictures; masks are not among them.
        masks: mask image → its picture, "" where that is not there.
        litter: files of operating systems, which are passed over.
        unsure_masks: folder whose images may be masks → an example: one of them and the image of the same name.
        detected_masks: the same for folders whose images are read as masks because of their content alone.
        ambiguous_masks: mask that is read for no image → the images of its name, of which none is nearer.
        encoding: that a user chose for texts that are not UTF-8; "" detects it.
        tick: called now and then by readers that take long.
    """

    root: Path
    files: list[str] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    masks: dict[str, str] = field(default_factory=dict)
    litter: int = 0
    unsure_masks: dict[str, tuple[str, str]] = field(default_factory=dict)
    detected_masks: dict[str, tuple[str, str]] = field(default_factory=dict)
    ambiguous_masks: dict[str, list[str]] = field(default_factory=dict)
    encoding: str = ""
    tick: Callable[[], None] = lambda: None
    _foreign: bytes | None = None
    _depth: int | None = None  # parts of the longest path of an image
    _cache: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @classmethod
    def scan(
        cls, root: Path, *, max_files: int | None = None, mask_folders: Mapping[str, str] | None = None
    ) -> Listing:
        """List the files below `root`.

        Args:
            mask_folders: folder → what a user says its images are, see `mask_pairs`.

        Raises:
            OutsideRoot: more than `max_files` files.
        """
        paths = list(walk_beneath(root, max_files=max_files))
        names = [name for name in paths if not is_junk(name.split("/"))]
        junk_count = len(paths) - len(names)
        while names and (wrapper := _only_folder(names)):
            root = root / wrapper
            names = [name[len(wrapper) + 1 :] for name in names]
        images = [name for name in names if PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES]
        pairs = mask_pairs.find(root, images, mask_folders)
        pictures = [name for name in images if name not in pairs.images]
        return cls(root, names, pictures, pairs.images, junk_count, pairs.unsure, pairs.detected, pairs.ambiguous)

    def with_suffix(self, suffix: str) -> list[str]:
        return [name for name in self.files if name.lower().endswith(suffix)]

    def find_image(
        self, name: str, problems: Problems, where: str, missing: Message, *, near: str = "", split: str = ""
    ) -> str | None:
        """Return the image that an annotation file names; None if none or several match.

        Reports at `where`: a fallback, images that fit equally well, or `missing`.
        """
        match = self.match(name, near=near, split=split)
        match.report(problems, where, name, missing)
        return match.source

    def match(self, name: str, *, near: str = "", split: str = "") -> Match:
        """Find the image that an annotation file means by `name`: a path of any kind, also absolute, or an address.

        Tried in order: next to the annotation file (`near`: its folder), as given, the longest common path suffix,
        then the same ignoring case, percent-encoding, and the ending. Of several equal ones those of the file's
        split, then the nearest; of equally near ones none. Without the exact name only one that is unique.
        """
        wanted = image_names.plain(name)
        for guess in (f"{near}/{wanted}" if near else wanted, wanted):
            if guess in self._by("path"):
                return Match(self._by("path")[guess][0])
        last = wanted.rpartition("/")[2]
        for by, key in (
            ("name", last),
            ("case", last.casefold()),
            ("escape", image_names.unescaped(last)),
            ("stem", image_names.stem_of(last)),
        ):
            fitting, shared = self._with_suffix(wanted) if by == "name" else self._alike(by, key, wanted)
            if not fitting:
                continue
            if len(fitting) > 1 and split:
                fitting = [path for path in fitting if split in map(split_of, path.split("/")[:-1])] or fitting
            best = all_nearest(fitting, near) if by == "name" else fitting
            if len(best) > 1:
                return Match(None, tied=tuple(best))
            if by == "name" and shared <= wanted.count("/"):
                by = "suffix"
            return Match(best[0], "" if by == "name" else by, len(fitting))
        return Match(None)

    def _with_suffix(self, wanted: str) -> tuple[list[str], int]:
        """Return the images whose path has most last parts in common with `wanted`, in any case, and their number."""
        parts = wanted.split("/")
        if self._depth is None:
            self._depth = max((path.count("/") + 1 for path in self.images), default=1)
        for count in range(min(len(parts), self._depth), 0, -1):
            if matches := self._by(f"last {count}").get(image_names.last_parts(parts, count)):
                return matches, count
        return [], 0

    def _alike(self, by: str, key: str, wanted: str) -> tuple[list[str], int]:
        candidates = self._by(by).get(key, [])
        return image_names.longest_suffix(candidates, wanted) if candidates else ([], 0)

    def find_stem(self, stem: str) -> list[str]:
        """Images called `stem`, whatever their folder and ending."""
        return self._by("exact stem").get(unicodedata.normalize("NFC", stem), [])

    def text(self, name: str, problems: Problems | None = None, *, max_bytes: int, declared: str = "") -> str:
        """The text of a file in whatever encoding it is; one other than UTF-8 is reported.

        Raises:
            NotText: binary data or an unknown encoding.
            Worded: larger than `max_bytes`.
        """
        path = self.root / name
        if path.stat().st_size > max_bytes:
            raise Worded(message("report.file_too_large", most_mib=max_bytes >> 20))
        data = path.read_bytes()
        return self.decode(name, data, problems, declared=declared)

    def decode(self, name: str, data: bytes, problems: Problems | None = None, *, declared: str = "") -> str:
        """Decode bytes that were read already, as `text` does."""
        try:
            return data.decode("utf-8-sig") if not declared and b"\0" not in data[:1024] else _strict(data, declared)
        except (UnicodeDecodeError, LookupError):
            pass
        decoded = encodings.decode(data, declared=declared, chosen=self.encoding, context=self._foreign_text())
        if problems is not None and decoded.alternatives:
            others = ", ".join(decoded.alternatives)
            problems.add(
                name, "uncertain_encoding", message("report.uncertain_encoding", name=decoded.encoding, others=others)
            )
        elif problems is not None and decoded.encoding != "utf-8":
            problems.note(name, "other_encoding", message("report.other_encoding", name=decoded.encoding))
        return decoded.text

    def _foreign_text(self) -> bytes:
        """Return lines that are not UTF-8 from small text files: context for the detection of their encoding."""
        if self._foreign is None:
            lines: list[bytes] = []
            size = 0
            for name in self.files:
                if PurePosixPath(name).suffix.lower() in _TEXT_SUFFIXES and size < encodings.MAX_DETECTION_BYTES:
                    foreign = _foreign_lines(self.root / name)
                    lines += foreign
                    size += sum(map(len, foreign))
            self._foreign = b"\n".join(lines)
        return self._foreign

    def _by(self, what: str) -> dict[str, list[str]]:
        if what not in self._cache:
            key_of = image_names.key_function(what)
            index: dict[str, list[str]] = defaultdict(list)
            for path in self.images:
                index[key_of(unicodedata.normalize("NFC", path))].append(path)
            self._cache[what] = dict(index)
        return self._cache[what]


def _strict(data: bytes, declared: str) -> str:
    if not encodings.is_encoding(declared):
        raise LookupError
    return data.decode(declared)


def _foreign_lines(path: Path) -> list[bytes]:
    """Lines of the beginning of a file that are no UTF-8."""
    try:
        with path.open("rb") as file:
            data = file.read(_CONTEXT_FILE_BYTES)
    except OSError:
        return []
    if b"\0" in data:
        return []
    try:
        data.decode()
        return []
    except UnicodeDecodeError:
        return [line for line in data.splitlines() if not _is_utf8(line)]


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


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
