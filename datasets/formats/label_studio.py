"""Read Label Studio's JSON and JSON-MIN exports.

Source: labelstud.io/guide/export. Coordinates are percent of the image. Rectangles, polygons, ellipses and brush masks
become shapes, choices a class of the image. Key points and other results are skipped, each one reported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import parse_qs, urlsplit

from aiplatform.lib.wording import Worded, message
from datasets.formats import brush_rle
from datasets.formats.class_numbers import NamedClasses
from datasets.formats.image_names import Match
from datasets.formats.images import unannotated
from datasets.formats.listing import Listing
from datasets.formats.neutral import SHAPES, ImageItem, Parsed, Shape, box
from datasets.formats.outline_shapes import ellipse, mask_shape, polygon, turned
from datasets.formats.problems import Problems, natural
from datasets.shapes.outlines import MAX_POINTS, is_number
from datasets.shapes.polygon import POLYGON

MAX_JSON_BYTES = 1 << 30
LOOKED_AT = 20
_HEAD_BYTES = 64 << 10
_UPLOAD_PREFIX = re.compile(r"^[0-9a-f]{8}-")  # Label Studio puts it before the names of uploads
#: Keys of a value that list its classes, by what the value is.
_LABELS = {
    "rectanglelabels": "rectangle",
    "polygonlabels": POLYGON.name,
    "ellipselabels": "ellipse",
    "brushlabels": "brush",
    "keypointlabels": "keypoint",
    "choices": "choices",
    "labels": "",  # of a region of any kind
}


def fits(listing: Listing) -> bool:
    """Whether a JSON file is a list of tasks."""
    return any(_is_export(listing, name) for name in sorted(listing.with_suffix(".json"), key=natural)[:LOOKED_AT])


def _is_export(listing: Listing, name: str) -> bool:
    path = listing.root / name
    if not 0 < path.stat().st_size <= MAX_JSON_BYTES:
        return False
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES).replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")
    tasks = b'"data"' in head and (b'"annotations"' in head or b'"completions"' in head)
    if head.startswith(b"{"):  # a task alone, or an annotation with its task, as a target storage has them
        return b'"data"' in head and b'"result"' in head and b'"to_name"' in head
    return head.startswith(b"[") and (tasks or b'"original_width"' in head or b'"annotator"' in head)


def read(listing: Listing) -> Parsed:
    """All images; those without a task or whose task has no annotation are not annotated."""
    parsed = Parsed(format="label-studio", task=SHAPES)
    items = unannotated(listing)
    parsed.images = list(items.values())
    named = NamedClasses()
    for name in sorted(listing.with_suffix(".json"), key=natural):
        listing.tick()
        if not _is_export(listing, name):
            continue
        parsed.labels.add(name)
        try:
            tasks = json.loads(listing.text(name, parsed.problems, max_bytes=MAX_JSON_BYTES))
        except Worded as exc:
            parsed.problems.add(name, "unreadable", exc.worded)
            continue
        except RecursionError:
            parsed.problems.add(name, "unreadable", message("report.nested_json"))
            continue
        except ValueError as exc:
            parsed.problems.add(name, "unreadable", message("report.not_json", error=str(exc)))
            continue
        _File(listing, name, items, named, parsed.problems).read(tasks)
    named.number(parsed)
    return parsed


@dataclass(slots=True)
class _Region:
    """What several results say of one region: its value, and the size its percents are of."""

    value: dict[str, Any]
    labels: dict[str, None]
    kind: str
    target: str  # the tag of the labelling interface that shows its image
    width: int | None
    height: int | None


class _File:
    """Reads the tasks of one file."""

    def __init__(
        self, listing: Listing, name: str, items: dict[str, ImageItem], named: NamedClasses, problems: Problems
    ) -> None:
        self.listing, self.name, self.items = listing, name, items
        self.named, self.problems = named, problems
        self.near = str(PurePosixPath(name).parent).removeprefix(".")

    def read(self, tasks: Any) -> None:
        for index, entry in enumerate(tasks if isinstance(tasks, list) else [tasks]):
            where = f"{self.name}: [{index}]"
            task = _whole_task(entry)
            if not isinstance(task, dict):
                self.problems.skip(where, "bad_annotation", message("report.bad_annotation"))
                continue
            results, is_annotated = self._results(task, where)
            item = self._image(task, where, len(results))
            if item is None:
                continue
            if is_annotated and item.annotated:
                self.problems.add(where, "duplicate_image", message("report.image_listed_twice", image=item.path))
            item.annotated = item.annotated or is_annotated
            others = self._others(task)
            for number, region in enumerate(_regions(results)):
                shown = others.get(region.target, item)
                shown.annotated = True
                shown.stated += region.kind != "choices"
                self._read_region(region, shown, f"{where}.result[{number}]")

    def _others(self, task: Mapping[str, Any]) -> dict[str, ImageItem]:
        """Map fields to images, for a task that shows several; tags of the interface have the fields' names."""
        data = task.get("data")
        fields = {key: name for key, name in data.items() if isinstance(name, str)} if isinstance(data, dict) else {}
        sources = {key: self._match(name).source for key, name in fields.items() if name}
        images = {key: self.items[source] for key, source in sources.items() if source is not None}
        return images if len({item.source for item in images.values()}) > 1 else {}

    def _results(self, task: Mapping[str, Any], where: str) -> tuple[list[Any], bool]:
        """Return the results of the selected annotation, and whether the task is annotated."""
        if "annotations" not in task:  # JSON-MIN: lists of values next to the data
            lists = [value for value in task.values() if isinstance(value, list)]
            results: list[Any] = [{"value": entry} for values in lists for entry in values if isinstance(entry, dict)]
            choices = [value for key, value in task.items() if key == "choice" and isinstance(value, str)]
            results += [{"type": "choices", "value": {"choices": [choice]}} for choice in choices]
            return results, bool(results) or "annotation_id" in task
        annotations = task["annotations"] if isinstance(task["annotations"], list) else []
        done = [entry for entry in annotations if isinstance(entry, dict) and not entry.get("was_cancelled")]
        if not done:
            self._count_unsubmitted(task, annotations, where)
            return [], False
        chosen = max(done, key=lambda entry: (bool(entry.get("ground_truth")), str(entry.get("updated_at") or "")))
        for entry in done:
            other = entry.get("result")
            if entry is not chosen and isinstance(other, list) and other:
                text = message("report.several_annotations")
                self.problems.skip(where, "several_annotations", text, count=len(other))
        result = chosen.get("result")
        return (result if isinstance(result, list) else []), True

    def _count_unsubmitted(self, task: Mapping[str, Any], annotations: list[Any], where: str) -> None:
        """Count what a task without an annotation has instead: predictions, drafts, cancelled annotations."""
        for code, entries in (
            ("predictions", task.get("predictions")),
            ("not_submitted", task.get("drafts")),
            ("not_submitted", annotations),
        ):
            results = [entry.get("result") for entry in entries or () if isinstance(entry, dict)]
            if count := sum(len(result) for result in results if isinstance(result, list)):
                self.problems.skip(where, code, message(f"report.{code}"), count=count)

    def _image(self, task: Mapping[str, Any], where: str, count: int) -> ImageItem | None:
        data = task.get("data")
        fields = data if isinstance(data, dict) else task
        names = [value for value in fields.values() if isinstance(value, str) and value]
        upload = task.get("file_upload")
        names = [upload, *names] if isinstance(upload, str) and upload else names
        matches = {name: self._match(name) for name in names}
        named_match = next(((name, match) for name, match in matches.items() if match.source), None)
        named_match = named_match or next(((name, match) for name, match in matches.items() if match.tied), None)
        wanted = next((name for name in names if "/" in name or "." in name), names[0] if names else "")
        name, match = named_match or (wanted, Match(None))
        match.report(self.problems, where, name, message("report.missing_image", image=wanted[:200]))
        if match.source is not None:
            return self.items[match.source]
        if count:
            self.problems.skip(where, "lost_shapes", message("report.image_lost"), count=count)
        return None

    def _match(self, name: str) -> Match:
        query = parse_qs(urlsplit(name).query) if "?d=" in name else {}
        path = query["d"][0] if query.get("d") else name
        match = self.listing.match(path, near=self.near)
        last = PurePosixPath(path.replace("\\", "/")).name
        if match.source is None and _UPLOAD_PREFIX.match(last):
            match = self.listing.match(_UPLOAD_PREFIX.sub("", last), near=self.near)
            return replace(match, by="prefix" if match.source else "")
        return match

    def _read_region(self, region: _Region, item: ImageItem, where: str) -> None:
        if region.kind == "choices":
            for label in region.labels:
                self.named.tag(item, label, where)
            return
        if region.kind not in _READERS:
            kind = region.kind or "result"
            self.problems.skip(where, "other_shape", message("report.other_shape", kind=kind[:20]))
            return
        if not region.labels:
            self.problems.skip(where, "no_class", message("report.object_without_name"))
            return
        if not region.width or not region.height:
            self.problems.skip(where, "bad_shape", message("report.bad_shape"))
            return
        item.width, item.height = region.width, region.height
        for at, label in enumerate(region.labels):
            try:
                shape = _READERS[region.kind](region.value, region.width, region.height)
            except (KeyError, TypeError, ValueError, OverflowError):
                self.problems.skip(where, "bad_shape", message("report.bad_shape"))
                return
            if shape.area <= 0:
                self.problems.skip(where, "no_area", message("report.flat_shape", image=item.path))
                return
            if region.kind == "ellipse" and not at:
                self.problems.note(where, "ellipse", message("report.ellipse"))
            self.named.add(item, label, shape)


def _whole_task(entry: Any) -> Any:
    """A task with its annotations, also of an annotation that has its task, or of an export before version 1."""
    if not isinstance(entry, dict):
        return entry
    of_task = entry.get("task")
    if isinstance(entry.get("result"), list) and isinstance(of_task, dict):
        return {"data": of_task.get("data"), "annotations": [entry]}
    if "annotations" not in entry and isinstance(entry.get("completions"), list):
        return entry | {"annotations": entry["completions"]}
    return entry


def _regions(results: list[Any]) -> Iterator[_Region]:
    """Results joined by their id: a region and its labels may be two results. Attributes of a region are left out."""
    joined: dict[Any, _Region] = {}
    for at, result in enumerate(results):
        if not isinstance(result, dict) or not isinstance(result.get("value"), dict):
            joined[at, ""] = _Region({}, {}, "", "", None, None)
            continue
        value: dict[str, Any] = result["value"]
        kind, labels = _kind(value, str(result.get("type") or ""))
        number = result.get("id")
        key = (number, "region") if isinstance(number, str) and number and kind != "choices" else (at, "")
        region = joined.setdefault(key, _Region({}, {}, "", str(result.get("to_name") or ""), None, None))
        region.value |= value
        region.labels |= dict.fromkeys(labels)
        region.kind = region.kind or kind
        region.width = region.width or _side(result.get("original_width") or value.get("original_width"))
        region.height = region.height or _side(result.get("original_height") or value.get("original_height"))
    yield from joined.values()


def _kind(value: Mapping[str, Any], stated: str) -> tuple[str, list[str]]:
    """What a value is, and its classes."""
    kind, labels = stated.removesuffix("labels"), list[str]()
    for key, name in _LABELS.items():
        if isinstance(value.get(key), list):
            labels += [label.strip()[:200] for label in value[key] if isinstance(label, str) and label.strip()]
            kind = name or kind
    if kind in {"", "label"}:
        if "rle" in value:
            kind = "brush"
        elif "points" in value:
            kind = POLYGON.name
        elif "radiusX" in value:
            kind = "ellipse"
        elif "height" in value:
            kind = "rectangle"
    return kind, labels


def _side(value: Any) -> int | None:
    return int(value) if is_number(value) and 0 < value < 1_000_000 else None


def _parts(value: Mapping[str, Any], *names: str) -> list[float]:
    """Finite numbers of a value.

    Raises:
        ValueError: one is none.
    """
    numbers = [value[name] for name in names]
    if not all(map(is_number, numbers)):
        raise ValueError(names)
    return [float(number) for number in numbers]


def _rectangle(value: Mapping[str, Any], width: int, height: int) -> Shape:
    x, y, across, down = _parts(value, "x", "y", "width", "height")
    left, top = x * width / 100, y * height / 100
    across, down = across * width / 100, down * height / 100
    degrees = float(value.get("rotation") or 0)
    if across <= 0 or down <= 0 or not degrees % 360:
        return box(0, left, top, max(across, 0.0), max(down, 0.0))
    corners = [(left, top), (left + across, top), (left + across, top + down), (left, top + down)]
    return polygon(turned(corners, (left, top), degrees))  # about the upper left corner


def _polygon(value: Mapping[str, Any], width: int, height: int) -> Shape:
    points = value["points"]
    if not isinstance(points, list) or not 3 <= len(points) <= MAX_POINTS:
        raise ValueError("points")
    if not all(isinstance(point, list) and len(point) == 2 and all(map(is_number, point)) for point in points):
        raise ValueError("points")
    return polygon([side for x, y in points for side in (x * width / 100, y * height / 100)])


def _ellipse(value: Mapping[str, Any], width: int, height: int) -> Shape:
    x, y, across, down = _parts(value, "x", "y", "radiusX", "radiusY")
    centre = (x * width / 100, y * height / 100)
    return ellipse(centre, across * width / 100, down * height / 100, float(value.get("rotation") or 0))


def _brush(value: Mapping[str, Any], width: int, height: int) -> Shape:
    return mask_shape(brush_rle.decode(value["rle"], width, height))


_READERS = {"rectangle": _rectangle, POLYGON.name: _polygon, "ellipse": _ellipse, "brush": _brush}
