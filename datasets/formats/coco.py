"""Find and load COCO detection files. What is in one of them is read by `coco_file`."""

from __future__ import annotations

import json
import mmap
from pathlib import Path, PurePosixPath
from typing import Any

from aiplatform.lib.wording import Worded, message
from datasets.formats.coco_file import CocoFile, Ids
from datasets.formats.images import split_in
from datasets.formats.listing import Listing, version_paths
from datasets.formats.neutral import SHAPES, ImageItem, Parsed, split_of
from datasets.formats.problems import Problems, natural

MAX_JSON_BYTES = 2 << 30
_KEYS = ('"images"', '"annotations"')
_SHAPE_KEYS = ('"categories"', '"bbox"')  # at least one of them; captions have neither


def fits(listing: Listing) -> bool:
    """Whether a JSON file of the folder has COCO's three lists."""
    return bool(files(listing))


def files(listing: Listing) -> list[str]:
    """The COCO files to read: `instances*` where there are any; those named after a split first."""
    names = [name for name in listing.with_suffix(".json") if _has_coco_keys(listing.root / name)]
    instances = [name for name in names if PurePosixPath(name).name.startswith("instances")]
    return sorted(instances or names, key=lambda name: (not _split_of_file(name), natural(name)))


def _has_coco_keys(path: Path) -> bool:
    if not 0 < path.stat().st_size <= MAX_JSON_BYTES:
        return False
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        encoding = _encoding(data[:4])
        matches = [data.find(key.encode(encoding)) >= 0 for key in (*_KEYS, *_SHAPE_KEYS)]
        return all(matches[: len(_KEYS)]) and any(matches[len(_KEYS) :])


def _encoding(head: bytes) -> str:
    """The encoding of a JSON file whose first character is ASCII, after a mark or without one."""
    if head.startswith(b"\xff\xfe") or head[1:2] == b"\0":
        return "utf-16-le"
    return "utf-16-be" if head.startswith((b"\xfe\xff", b"\0")) else "ascii"


def _split_of_file(name: str) -> str:
    parts = PurePosixPath(name).stem.replace("-", "_").split("_")
    return next((split for word in parts if (split := split_of(word))), "")


def read(listing: Listing) -> Parsed:
    """All COCO files of the folder as one data set. Images that none of them lists are not annotated.

    Ids are kept. Where a file counts annotations or images from 0 they are moved up by one, because common
    scorers take id 0 for "no match"; where two files use the same ids the second file's are moved past the first's.
    Classes of several files are joined by name.
    """
    parsed = Parsed(format="coco", task=SHAPES)
    taken: dict[str, str] = {}
    ids = Ids()
    many = len(files(listing)) > 1
    for name in files(listing):
        where = f"{name}: " if many else ""
        listing.tick()
        parsed.labels.add(name)
        try:
            data = _load(listing, name, parsed.problems)
        except Worded as exc:
            parsed.problems.add(name, "unreadable", exc.worded)
            continue
        CocoFile(listing, name, where, parsed, ids, taken, split=_split_of_file(name)).read(data)
    names = _names(parsed)
    for image in parsed.images:
        image.path = names[image.source]
    _add_unlisted(listing, parsed)
    return parsed


def _add_unlisted(listing: Listing, parsed: Parsed) -> None:
    """Add images that no file lists; they are not annotated."""
    listed = {image.source for image in parsed.images}
    taken = {image.path for image in parsed.images}
    first = parsed.images[0] if parsed.images else None
    shared = first.source.removesuffix(first.path) if first and first.source.endswith(first.path) else ""
    for source in sorted(set(listing.images) - listed, key=natural):
        path = source.removeprefix(shared)
        path = source if path in taken else path
        parsed.problems.add(source, "unlisted_image", message("report.unlisted_image"))
        parsed.images.append(ImageItem(source, path, split=split_in(source), annotated=False))


def _load(listing: Listing, name: str, problems: Problems) -> Any:
    text = listing.text(name, problems, max_bytes=MAX_JSON_BYTES)
    try:
        return json.loads(text)
    except RecursionError:
        raise Worded(message("report.nested_json")) from None
    except ValueError as exc:
        raise Worded(message("report.not_json", error=str(exc))) from None


def _names(parsed: Parsed) -> dict[str, str]:
    """Version paths: as the file names them where those are unique, else by folder."""
    named_paths = {image.source: image.path for image in parsed.images}
    if len(set(named_paths.values())) == len(named_paths):
        return named_paths
    return version_paths(list(named_paths))
