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
from inference.evaluation.differences import FEW_IMAGES, Row, Value
from inference.evaluation.models import Evaluation
from inference.kit.contracts.served_task import Measure, ServedTask
from inference.kit.task_kinds import TASKS

RESAMPLES = 500
MOST_SLICES = 80
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
        return self.images < FEW_IMAGES

    @property
    def first(self) -> Value | None:
        """The figure of the first evaluation."""
        return self.row.values[0] if self.row else None


@dataclass(frozen=True)
class Asked:
    """A part that somebody asks for, in the words of the gallery of a dataset version; empty ones say nothing."""

    words: str = ""
    class_id: int | None = None
    split: str = ""

    def __bool__(self) -> bool:
        return bool(self.words.strip() or self.class_id is not None or self.split)

    def paths(self, version: DatasetVersion) -> frozenset[str]:
        """The images of a version that it means."""
        rows = version.assets.of_version(
            version.pk, split=self.split or None, class_id=self.class_id, text=self.words[:100]
        )
        return frozenset(rows.order_by().values_list("path", flat=True))


def chosen(user: User, number: int) -> Evaluation:
    """One evaluation with results.

    Raises:
        NotFound: it is not there for this person.
        Invalid: it has no results, or its task is gone.
    """
    row: Evaluation | None = Evaluation.objects.visible_to(user).for_list().filter(pk=number).first()
    if row is None:
        raise NotFound(_("There is no evaluation %(numbers)s.") % {"numbers": number})
    if not row.published_attempt or results.load(row) is None:
        raise Invalid(_("%(name)s has no results yet.") % {"name": row}, field="evaluation")
    results.check_predictions(row)
    if row.task not in TASKS:
        raise Invalid(_("%(name)s is of a task that this platform no longer knows.") % {"name": row})
    return row


def of(rows: Sequence[Evaluation], base: Evaluation, *, asked: Asked | None = None, by: User | None = None
       ) -> list[Slice]:  # fmt: skip
    """The parts, the worst of the first evaluation first; what was asked for before all.

    Args:
        rows: one evaluation of `chosen`, or some of `differences.chosen`.
        by: who asks; images of the dataset are looked for only where they may see it.

    Raises:
        Invalid: they did not judge the same images, or the data that was asked for cannot be looked at.
    """
    which = tuple((row.pk, *results.stamp(row)) for row in rows)
    place = [row.pk for row in rows].index(base.pk)
    found = list(_of(which, place))
    return [*_asked(rows, place, asked, by), *found] if asked else found


def _asked(rows: Sequence[Evaluation], base: int, asked: Asked, by: User | None) -> Iterator[Slice]:
    version = DatasetVersion.objects.visible_to(by).filter(pk=rows[base].version_id or 0).first() if by else None
    if version is None:
        raise Invalid(_("The dataset is gone, or is not yours to see, so its images cannot be looked for."))
    paths = asked.paths(version)
    entries = differences.paired(rows)
    with differences.readable(rows):
        yield _slice(rows, entries, base, ASKED, "", lambda entry: entry["path"] in paths)


@lru_cache(maxsize=32)
def _of(which: tuple[tuple[Any, ...], ...], base: int) -> tuple[Slice, ...]:
    found = Evaluation.objects.select_related("job").in_bulk([number for number, *_stamp in which])
    rows = [found[number] for number, *_stamp in which]
    entries = differences.paired(rows)
    with differences.readable(rows):
        made = [
            _slice(rows, entries, base, by, name, belongs)
            for by, name, belongs in _parts(entries[base], rows[base])[:MOST_SLICES]
        ]
        made += _by_object(rows, entries, base)
    return tuple(sorted(made, key=_worst))


def _worst(one: Slice) -> tuple[bool, float]:
    value = one.first
    if value is None or value.value is None or one.row is None:
        return True, 0.0
    return False, -value.value if one.row.lower_is_better else value.value


def _slice(
    rows: Sequence[Evaluation],
    entries: Sequence[Sequence[Entry]],
    base: int,
    by: str,
    name: str,
    belongs: Callable[[Entry], bool],
) -> Slice:
    kept = [place for place, entry in enumerate(entries[base]) if belongs(entry)]
    own = [[one[place] for place in kept] for one in entries]
    row = _row(_main(TASKS[rows[base].task]), own, rows, base) if kept else None
    return Slice(by, name, len(kept), None, row)


def _main(task: ServedTask) -> ServedTask:
    """The task with few figures: those of lists, and one that every evaluation keeps."""
    keys = set(task.pages.headline)
    return replace(
        task,
        measures=tuple(one for at, one in enumerate(task.measures) if one.key in keys or at == 0),
        means=tuple(one for one in task.means if one.key in keys),
        ranked=tuple(one for one in task.ranked if one.key in keys),
    )


def _row(task: ServedTask, entries: list[list[Entry]], rows: Sequence[Evaluation], base: int) -> Row | None:
    found = differences.rows_of(task, entries, [row.pk for row in rows], base, resamples=RESAMPLES)
    by_key = {row.key: row for row in found}
    return next((by_key[key] for key in task.pages.headline if key in by_key), found[0] if found else None)


Part = tuple[str, str, Callable[[Entry], bool]]


def _parts(entries: Sequence[Entry], evaluation: Evaluation) -> list[Part]:
    """What images are divided by, without divisions that have all of them in one part."""
    divided = [_by(SPLIT, entries, _split), _by(PIXELS, entries, _pixels), _by(LIGHT, entries, _light),
               _by(COUNT, entries, _count)]  # fmt: skip
    names = sorted({name for entry in entries for name in _about(entry).get("marks", {})})
    marks = [
        (MARK, f"{name}: {value}", _marked(name, value))
        for name in names
        for value in sorted({one for entry in entries for one in _about(entry).get("marks", {}).get(name, ())})
    ]
    return [*(part for parts in divided for part in parts), *marks]


def _by(by: str, entries: Sequence[Entry], word: Callable[[Entry], str | None]) -> list[Part]:
    words = sorted({found for entry in entries if (found := word(entry)) is not None})
    return [(by, name, _worded(word, name)) for name in words] if len(words) > 1 else []


def _worded(word: Callable[[Entry], str | None], name: str) -> Callable[[Entry], bool]:
    return lambda entry: word(entry) == name


def _about(entry: Entry) -> Mapping[str, Any]:
    about = entry.get("about")
    return about if isinstance(about, dict) else {}


def _marked(name: str, value: str) -> Callable[[Entry], bool]:
    return lambda entry: value in _about(entry).get("marks", {}).get(name, ())


def _split(entry: Entry) -> str | None:
    about = _about(entry)
    return (about["split"] or "none") if "split" in about else None


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
    """Objects by their size: what share of them is found."""
    first = next((entry for entry in entries[base] if entry.get("truth")), None)
    boxed = first is not None and isinstance(first["truth"], list) and len(first["truth"][0]) == len("cxyxyf")
    if not boxed:
        return
    for name, low, high in (("small", 0, SMALL), ("medium", SMALL, LARGE), ("large", LARGE, 1e18)):
        measure = Measure(OBJECTS, "Recall over all objects", _found(low, high), _there(low, high))
        task = replace(TASKS[rows[base].task], measures=(measure,), means=(), ranked=(), pairs=None)
        kept = [place for place, entry in enumerate(entries[base]) if measure.under(entry)]
        if kept:
            own: list[list[Entry]] = [[one[place] for place in kept] for one in entries]
            objects = int(sum(measure.under(entry) for entry in own[base]))
            yield Slice(OBJECT, name, len(kept), objects, _row(task, own, rows, base))


def _areas(entry: Entry) -> Iterator[tuple[float, bool]]:
    for _kind, x1, y1, x2, y2, found in entry["truth"]:
        yield (x2 - x1) * (y2 - y1), bool(found)


def _found(low: float, high: float) -> Callable[[Entry], float]:
    return lambda entry: float(sum(found for area, found in _areas(entry) if low <= area < high))


def _there(low: float, high: float) -> Callable[[Entry], float]:
    return lambda entry: float(sum(low <= area < high for area, _is_found in _areas(entry)))
