"""Read YOLO data sets: a text file per image, a line per object, boxes or polygons in parts of width and height.

Both layouts (`images/train` beside `labels/train`, `train/images` beside `train/labels`) and labels beside their
images are understood. Names come from `data.yaml` or a list of classes; without one they are numbered.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from aiplatform.lib.wording import Worded, message
from datasets.formats import class_lists
from datasets.formats.file_kinds import parse_yolo_line
from datasets.formats.image_names import Match
from datasets.formats.images import split_in
from datasets.formats.listing import Listing, version_paths
from datasets.formats.nearness import all_nearest, nearest
from datasets.formats.neutral import SHAPES, ClassInfo, ImageItem, Parsed, Shape, box, split_of
from datasets.formats.problems import Problems, natural
from datasets.shapes import geometry
from datasets.shapes.box import BOX
from datasets.shapes.outlines import MAX_POINTS, spanned
from datasets.shapes.polygon import POLYGON

MAX_LABEL_BYTES = 16 << 20
LOOKED_AT = 20  # label files
FLAT = 1e-10  # of the area of the image: less is rounding, as where a polygon's two halves have opposite directions


def fits(listing: Listing) -> bool:
    """Whether most lines of text files named like images are a class number with numbers.

    With a YAML file with names of classes one such line is enough, or label files that are all empty.
    """
    pairs = _label_files(listing)
    if not pairs:
        return False
    lines = good = 0
    for name in list(dict.fromkeys([*list(pairs.values())[:LOOKED_AT], *list(pairs.values())[-LOOKED_AT:]])):
        for line in list(filter(_words, _lines(listing, name)))[:LOOKED_AT]:
            lines += 1
            good += parse_yolo_line(_words(line)) is not None
    if _config(listing)[1] is not None:
        return good > 0 or not lines
    return good * 2 > lines


def read(listing: Listing) -> Parsed:
    """All images; those without a label file are not annotated, those with an empty one are checked and empty.

    Class ids count from 1 in the order of the list of classes.
    """
    parsed = Parsed(format="yolo", task=SHAPES)
    config, data = _config(listing, parsed.problems)
    names = class_lists.yaml_names(data) if data else None
    if config:
        parsed.labels.add(config)
    lists = class_lists.read_lists(listing, parsed.problems)
    parsed.labels.update(lists.files)
    if names is None:
        names = lists.by_index
        _report_unread_yaml(listing, parsed)
    elif lists.by_index and lists.by_index != names:
        parsed.problems.add(lists.files[0], "other_names", message("report.other_names", file=config))
    splits = _Splits(listing, data or {}, parsed)
    labels = _label_files(listing)
    _drop_ambiguous(listing, labels, parsed)
    keypoints = _keypoint_numbers(data or {})
    paths = version_paths(listing.images)
    used: set[int] = set()
    for source in sorted(listing.images, key=natural):
        listing.tick()
        item = ImageItem(source, paths[source], split=splits.split_for(source), annotated=False, relative=True)
        parsed.images.append(item)
        if source in labels:
            parsed.labels.add(labels[source])
            item.annotated = True
            _read_labels(listing, labels[source], item, parsed, keypoints)
            used.update(shape.class_id - 1 for shape in item.shapes)
    for index in sorted(used | set(names)):
        if index not in names:
            parsed.problems.add("", "unnamed_class", message("report.unnamed_class", index=index))
        parsed.classes.append(ClassInfo(index + 1, names.get(index, str(index))))
    _report_lonely(listing, parsed)
    return parsed


def _config(listing: Listing, problems: Problems | None = None) -> tuple[str, dict[str, Any] | None]:
    """Return the YAML file with the class names, and its content; "" and None without one."""
    names = [*listing.with_suffix(".yaml"), *listing.with_suffix(".yml")]
    for name in sorted(names, key=lambda name: (name.count("/"), "data" not in name, natural(name))):
        data = class_lists.yaml_object(listing, name)
        if data is not None and class_lists.yaml_names(data):
            if problems is not None:  # reports its encoding
                class_lists.yaml_object(listing, name, problems)
            return name, data
    return "", None


def _label_files(listing: Listing) -> dict[str, str]:
    """Map images to label files: in the same folder, or with `labels` for `images` in the path."""
    texts = {name for name in listing.files if name.lower().endswith(".txt")}
    if not texts:
        return {}
    by_stem: dict[str, list[str]] = {}
    for name in texts:
        if "labels" in name.casefold().split("/")[:-1]:
            by_stem.setdefault(PurePosixPath(name).stem, []).append(name)
    folded = {name.casefold(): name for name in texts}
    pairs = {}
    for source in listing.images:
        pure = PurePosixPath(source).with_suffix(".txt")
        parts = list(pure.parts)
        places = [at for at, part in enumerate(parts[:-1]) if part.casefold() in {"images", "image", "imgs", "img"}]
        sibling = str(pure)
        swapped = ["/".join([*parts[:at], "labels", *parts[at + 1 :]]) for at in reversed(places)]
        name = next((name for name in (*swapped, sibling) if name in texts), "")
        if not name and pure.stem in by_stem:
            name = _fitting(by_stem[pure.stem], source)
        name = name or next((folded[key] for key in map(str.casefold, (*swapped, sibling)) if key in folded), "")
        if name:
            pairs[source] = name
    return pairs


def _drop_ambiguous(listing: Listing, labels: dict[str, str], parsed: Parsed) -> None:
    """Leave one image to a label file that images of several folders fit: the nearest one, or none, with a report."""
    images: dict[str, list[str]] = {}
    for source, name in labels.items():
        images.setdefault(name, []).append(source)
    for name, sources in images.items():
        if len({PurePosixPath(source).parent for source in sources}) < 2:
            continue
        near = all_nearest(sources, str(PurePosixPath(name).parent))
        match = Match(near[0], count=len(sources)) if len(near) == 1 else Match(None, tied=tuple(near))
        match.report(parsed.problems, name, PurePosixPath(name).stem)
        for source in sources:
            if source != match.source:
                del labels[source]
        if match.source is None:
            parsed.labels.add(name)
            _count_lost(listing, name, parsed.problems)


def _count_lost(listing: Listing, name: str, problems: Problems) -> None:
    if count := sum(map(bool, map(_words, _lines(listing, name)))):
        problems.skip(name, "lost_shapes", message("report.file_lost"), count=count)


def _fitting(names: list[str], source: str) -> str:
    """Of label files of the image's name, the nearest of the same split."""
    split = split_in(source)
    fair = [name for name in names if split_in(name) in {split, ""}]
    return nearest(fair, str(PurePosixPath(source).parent)) if fair else ""


def _keypoint_numbers(data: Mapping[str, Any]) -> int:
    """Numbers per line that are keypoints, as `kpt_shape` says; 0 without."""
    shape = data.get("kpt_shape")
    if isinstance(shape, list) and len(shape) == 2 and all(str(side).isdecimal() for side in shape):
        sides = [int(str(side)[:4]) for side in shape]
        return sides[0] * sides[1]
    return 0


def _lines(listing: Listing, name: str, problems: Problems | None = None) -> list[str]:
    """The lines of a label file or list; none where it cannot be read, which is reported."""
    try:
        return listing.text(name, problems, max_bytes=MAX_LABEL_BYTES).splitlines()
    except Worded as exc:
        if problems is not None:
            problems.add(name, "unreadable", exc.worded)
        return []


def _words(line: str) -> list[str]:
    """The words of a line before a comment."""
    return line.partition("#")[0].split()


def _report_unread_yaml(listing: Listing, parsed: Parsed) -> None:
    """Name YAML files that have names of classes but give none."""
    for name in [*listing.with_suffix(".yaml"), *listing.with_suffix(".yml")]:
        if any(line.startswith("names") for line in _lines(listing, name)):
            parsed.labels.add(name)
            parsed.problems.add(name, "unreadable", message("report.no_yaml_names"))


def _read_labels(listing: Listing, name: str, item: ImageItem, parsed: Parsed, keypoints: int) -> None:
    problems = parsed.problems
    read_lines: set[tuple[str, ...]] = set()
    unreadable_before = problems.counts["unreadable"]
    lines = _lines(listing, name, problems)
    item.stated = problems.counts["unreadable"] - unreadable_before  # their number is unknown
    for number, line in enumerate(lines, 1):
        where = f"{name}:{number}"
        fields = _words(line)
        if not fields:
            continue
        item.stated += 1
        parsed_line = parse_yolo_line(fields)
        if parsed_line is None or not all(map(math.isfinite, parsed_line[1])):
            problems.skip(where, "bad_line", message("report.yolo_numbers"))
            continue
        index, numbers = parsed_line
        scored = len(numbers) == 5  # the last is a confidence, or the number of a track
        if any(not -1 <= value <= 2 for value in (numbers[:4] if scored else numbers)):
            problems.skip(where, "pixel_line", message("report.yolo_pixels"))
            continue
        if tuple(fields) in read_lines:
            problems.add(where, "same_line", message("report.same_line"))
            continue
        read_lines.add(tuple(fields))
        if keypoints and len(numbers) == 4 + keypoints:
            problems.add(where, "keypoints", message("report.yolo_keypoints"))
            numbers = numbers[:4]
        elif scored:
            problems.note(where, "score", message("report.score"))
            numbers = numbers[:4]
        shape = _shape(index + 1, numbers)
        if shape is None:
            problems.skip(where, "bad_line", message("report.yolo_shape"))
        elif shape.area <= FLAT:
            code = "degenerate_box" if shape.kind == BOX.name else "degenerate_polygon"
            problems.skip(where, code, message("report.flat_shape", image=item.path))
        else:
            item.shapes.append(shape)


def _shape(class_id: int, numbers: list[float]) -> Shape | None:
    if len(numbers) == 4:
        x, y, width, height = numbers
        return box(class_id, x - width / 2, y - height / 2, width, height)
    if len(numbers) < 6 or len(numbers) % 2 or len(numbers) > 2 * MAX_POINTS:
        return None
    return Shape(class_id, POLYGON.name, spanned([numbers]), [numbers], geometry.shoelace(numbers))


class _Splits:
    """Which split an image is of: by a list or a folder the YAML file names, else by its folders."""

    def __init__(self, listing: Listing, data: Mapping[str, Any], parsed: Parsed) -> None:
        self.folders: list[tuple[str, str]] = []
        self.named: dict[str, str] = {}
        for split in ("train", "val", "test"):
            value = data.get(split)
            for entry in value if isinstance(value, list) else [value]:
                if not isinstance(entry, str):
                    continue
                if entry.lower().endswith(".txt"):
                    self._list(listing, entry, split, parsed)
                else:
                    self.folders.append((entry.replace("\\", "/").strip("./") + "/", split))
        if not self.named:
            for split in ("train", "val", "test"):
                self._list(listing, f"{split}.txt", split, parsed)

    def _list(self, listing: Listing, entry: str, split: str, parsed: Parsed) -> None:
        base = PurePosixPath(entry.replace("\\", "/")).name
        for name in listing.files:
            if PurePosixPath(name).name != base or name in parsed.labels:
                continue
            paths = [line.strip() for line in _lines(listing, name, parsed.problems) if line.strip()]
            if not any(PurePosixPath(path).suffix for path in paths[:5]):
                continue
            parsed.labels.add(name)
            for path in paths:
                near = str(PurePosixPath(name).parent).removeprefix(".")
                missing = message("report.missing_listed_image", image=path)
                if source := listing.find_image(path, parsed.problems, name, missing, near=near):
                    self.named.setdefault(source, split)
            return

    def split_for(self, source: str) -> str:
        if source in self.named:
            return self.named[source]
        by_folder = next((split for folder, split in self.folders if f"/{folder}" in f"/{source}"), "")
        own = next((word for part in source.split("/")[:-1] if (word := split_of(part))), "")
        return by_folder or own


def _report_lonely(listing: Listing, parsed: Parsed) -> None:
    """Name label files whose image is not there."""
    for name in listing.files:
        if name in parsed.labels or not name.lower().endswith(".txt"):
            continue
        if "labels" in name.casefold().split("/")[:-1]:
            parsed.labels.add(name)
            parsed.problems.add(name, "missing_image", message("report.lonely_label_file"))
            _count_lost(listing, name, parsed.problems)
