"""Figures of parts of the images that an evaluation judged: by split, size, brightness, marks, and what somebody asks.

Each has its interval by the bootstrap, as evaluations beside each other have (see `differences`). One evaluation is
looked at, or up to six with the differences of the others from a base; the parts are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotFound
from datasets.models import DatasetVersion
from inference.evaluation import differences, results
from inference.evaluation.differences import MIN_IMAGES, Row, Value
from inference.evaluation.models import Evaluation
from inference.kit.contracts.served_task import Measure, ServedTask
from inference.kit.task_kinds import TASKS

RESAMPLES = 500
MAX_SLICES = 80
SPLIT, PIXELS, LIGHT, COUNT, OBJECT, MARK, ASKED = "split", "pixels", "light", "count", "object", "mark", "asked"
SMALL, LARGE = 32**2, 96**2  # areas in pixels between which COCO calls an object of medium size
OBJECTS = "objects_recall"
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Slice:
    """A part of the images, or of the objects on them.

    Attributes:
        by: what it is a part by: split, pixels, light, count, object, mark or asked.
        name: which part: "test", "small"; of a mark "name: value".
        images: how many belong to it.
        objects: how many objects, of a part of objects; else None.
        row: the figure by which parts are told apart, of each evaluation; None where none can be had.
    """

    by: str
    name: str
    images: int
    objects: int | None
    row: Row | None

    @property
    def is_small(self) -> bool:
        """Whether it has too few images for its interval to be trusted."""
        return self.images < MIN_IMAGES

    @property
    def first(self) -> Value | None:
        """The figure of the first evaluation."""
        return self.row.values[0] if self.row else None


@dataclass(frozen=True)
class ImageFilter:
    """A filter of images with the fields of the gallery of a dataset version; empty ones match everything."""

    terms: str = ""
    class_id: int | None = None
    split: str = ""

    def __bool__(self) -> bool:
        return bool(self.terms.strip() or self.class_id is not None or self.split)

    def paths(self, version: DatasetVersion) -> frozenset[str]:
        """The images of a version that it means."""
        rows = version.assets.of_version(
            version.pk, split=self.split or None, class_id=self.class_id, text=self.terms[:100]
        )
        return frozenset(rows.order_by().values_list("path", flat=True))


def find_evaluation(user: User, number: int) -> Evaluation:
    """Return an evaluation with results.

    Raises:
        NotFound: it is not visible to the user.
        Invalid: it has no results, or its task is gone.
    """
    row: Evaluation | None = Evaluation.objects.visible_to(user).for_list().filter(pk=number).first()
    if row is None:
        raise NotFound(_("Evaluation %(numbers)s not found.") % {"numbers": number})
    if not row.published_attempt or results.load(row) is None:
        raise Invalid(_("%(name)s has no results yet.") % {"name": row}, field="evaluation")
    results.check_predictions(row)
    if row.task not in TASKS:
        raise Invalid(_("%(name)s has a task that this platform no longer supports.") % {"name": row})
    return row


def compute(
    rows: Sequence[Evaluation], base: Evaluation, *, image_filter: ImageFilter | None = None, by: User | None = None
) -> list[Slice]:
    """Compute the slices, the worst of the first evaluation first; the filtered one before all.

    Args:
        rows: one evaluation of `find_evaluation`, or some of `differences.select_evaluations`.
        by: who asks; images of the dataset are looked for only where they may see it.

    Raises:
        Invalid: they did not judge the same images, or the data that was asked for cannot be looked at.
    """
    which = tuple((row.pk, *results.stamp(row)) for row in rows)
    base_index = [row.pk for row in rows].index(base.pk)
    parts = list(_compute(which, base_index))
    return [*_filtered(rows, base_index, image_filter, by), *parts] if image_filter else parts


def _filtered(rows: Sequence[Evaluation], base: int, image_filter: ImageFilter, by: User | None) -> Iterator[Slice]:
    version = DatasetVersion.objects.visible_to(by).filter(pk=rows[base].version_id or 0).first() if by else None
    if version is None:
        raise Invalid(_("The dataset was deleted or is not visible to you, so its images cannot be searched."))
    paths = image_filter.paths(version)
    entries = differences.paired(rows)
    with differences.readable(rows):
        yield _slice(rows, entries, base, ASKED, "", lambda entry: entry["path"] in paths)


@lru_cache(maxsize=32)
def _compute(which: tuple[tuple[Any, ...], ...], base: int) -> tuple[Slice, ...]:
    by_id = Evaluation.objects.select_related("job").in_bulk([number for number, *_stamp in which])
    rows = [by_id[number] for number, *_stamp in which]
    entries = differences.paired(rows)
    with differences.readable(rows):
        parts = [
            _slice(rows, entries, base, by, name, belongs)
            for by, name, belongs in _parts(entries[base], rows[base])[:MAX_SLICES]
        ]
        parts += _by_object(rows, entries, base)
    return tuple(sorted(parts, key=_sort_key))


def _sort_key(part: Slice) -> tuple[bool, float]:
    value = part.first
    if value is None or value.value is None or part.row is None:
        return True, 0.0
    return False, -value.value if part.row.lower_is_better else value.value


def _slice(
    rows: Sequence[Evaluation],
    entries: Sequence[Sequence[Entry]],
    base: int,
    by: str,
    name: str,
    belongs: Callable[[Entry], bool],
) -> Slice:
    indices = [index for index, entry in enumerate(entries[base]) if belongs(entry)]
    own = [[images[index] for index in indices] for images in entries]
    row = _row(_main(TASKS[rows[base].task]), own, rows, base) if indices else None
    return Slice(by, name, len(indices), None, row)


def _main(task: ServedTask) -> ServedTask:
    """Return the task with few metrics: those of lists, and one that every evaluation has."""
    keys = set(task.pages.headline)
    return replace(
        task,
        measures=tuple(measure for at, measure in enumerate(task.measures) if measure.key in keys or at == 0),
        means=tuple(measure for measure in task.means if measure.key in keys),
        ranked=tuple(measure for measure in task.ranked if measure.key in keys),
    )


def _row(task: ServedTask, entries: list[list[Entry]], rows: Sequence[Evaluation], base: int) -> Row | None:
    table = differences.rows_of(task, entries, [row.pk for row in rows], base, resamples=RESAMPLES)
    by_key = {row.key: row for row in table}
    return next((by_key[key] for key in task.pages.headline if key in by_key), table[0] if table else None)


Part = tuple[str, str, Callable[[Entry], bool]]


def _parts(entries: Sequence[Entry], evaluation: Evaluation) -> list[Part]:
    """Return the groups of images, without divisions that have all images in one group."""
    divided = [_by(SPLIT, entries, _split), _by(PIXELS, entries, _pixels), _by(LIGHT, entries, _light),
               _by(COUNT, entries, _count)]  # fmt: skip
    names = sorted({name for entry in entries for name in _about(entry).get("marks", {})})
    marks = [
        (MARK, f"{name}: {value}", _has_mark(name, value))
        for name in names
        for value in sorted({mark for entry in entries for mark in _about(entry).get("marks", {}).get(name, ())})
    ]
    return [*(part for parts in divided for part in parts), *marks]


def _by(by: str, entries: Sequence[Entry], word: Callable[[Entry], str | None]) -> list[Part]:
    labels = sorted({label for entry in entries if (label := word(entry)) is not None})
    return [(by, name, _has_word(word, name)) for name in labels] if len(labels) > 1 else []


def _has_word(word: Callable[[Entry], str | None], name: str) -> Callable[[Entry], bool]:
    return lambda entry: word(entry) == name


def _about(entry: Entry) -> Mapping[str, Any]:
    facts = entry.get("about")
    return facts if isinstance(facts, dict) else {}


def _has_mark(name: str, value: str) -> Callable[[Entry], bool]:
    return lambda entry: value in _about(entry).get("marks", {}).get(name, ())


def _split(entry: Entry) -> str | None:
    facts = _about(entry)
    return (facts["split"] or "none") if "split" in facts else None


def _pixels(entry: Entry) -> str:
    millions = entry["width"] * entry["height"] / 1e6
    return "small" if millions < 0.25 else "medium" if millions < 1 else "large" if millions < 4 else "huge"


def _light(entry: Entry) -> str | None:
    light = _about(entry).get("light")
    if not isinstance(light, int | float):
        return None
    return "dark" if light < 85 else "medium" if light < 170 else "bright"


def _count(entry: Entry) -> str | None:
    """How many objects are on it, of tasks whose entries count them."""
    truths = entry.get("truths")
    if not isinstance(truths, dict):
        return None
    number = sum(truths.values())
    return "none" if not number else "one" if number == 1 else "some" if number <= 5 else "many"


def _by_object(rows: Sequence[Evaluation], entries: list[list[dict[str, Any]]], base: int) -> Iterator[Slice]:
    """Yield objects by their size: the share that was detected."""
    first = next((entry for entry in entries[base] if entry.get("truth")), None)
    boxed = first is not None and isinstance(first["truth"], list) and len(first["truth"][0]) == len("cxyxyf")
    if not boxed:
        return
    for name, low, high in (("small", 0, SMALL), ("medium", SMALL, LARGE), ("large", LARGE, 1e18)):
        measure = Measure(OBJECTS, "Recall over all objects", _count_detected(low, high), _count_objects(low, high))
        task = replace(TASKS[rows[base].task], measures=(measure,), means=(), ranked=(), pairs=None)
        indices = [index for index, entry in enumerate(entries[base]) if measure.under(entry)]
        if indices:
            own: list[list[Entry]] = [[images[index] for index in indices] for images in entries]
            objects = int(sum(measure.under(entry) for entry in own[base]))
            yield Slice(OBJECT, name, len(indices), objects, _row(task, own, rows, base))


def _areas(entry: Entry) -> Iterator[tuple[float, bool]]:
    for _kind, x1, y1, x2, y2, is_detected in entry["truth"]:
        yield (x2 - x1) * (y2 - y1), bool(is_detected)


def _count_detected(low: float, high: float) -> Callable[[Entry], float]:
    return lambda entry: float(sum(is_detected for area, is_detected in _areas(entry) if low <= area < high))


def _count_objects(low: float, high: float) -> Callable[[Entry], float]:
    return lambda entry: float(sum(low <= area < high for area, _is_found in _areas(entry)))
