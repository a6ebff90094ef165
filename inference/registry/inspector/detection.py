"""What the files of a model define, what follows from their shapes, and what is only a guess. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from aiplatform.lib.errors import DomainError
from inference.kit.model_io.spec import BGR, RGB
from inference.registry.formats.declared import LAYOUTS, NOTHING, PIXELS, Declared, Files, Pixels
from inference.registry.formats.foreign_metadata import FileFacts
from inference.registry.inspector import variants

ENTERED, FILE, SHAPES, USUAL, GUESS, MISSING = "entered", "file", "shapes", "usual", "guess", "missing"
CUSTOM = "custom"  # mean and std of a file that have no name among PIXELS


@dataclass(frozen=True)
class Value:
    """One detected property.

    Args:
        field: a field of `Declared`, or `size` for width and height.
        value: of `labels` the names, or their number where nobody named them.
        source: ENTERED by the user, FILE, SHAPES of the tensors, USUAL for the layout, GUESS, or MISSING.
    """

    field: str
    value: Any
    source: str


@dataclass(frozen=True)
class Detection:
    """How a model is read unless the user decides otherwise.

    Args:
        declaration: complete, as an import takes it; None where a value is missing or the outputs are unknown.
        refusals: of layouts that match the outputs, but lack a value or contradict one that was entered.
        interpretations: number of declarations that match the files.
    """

    declaration: Declared | None
    values: tuple[Value, ...]
    refusals: tuple[DomainError, ...] = ()
    interpretations: int = 0

    @property
    def is_guess(self) -> bool:
        """Whether a trial on images should confirm the declaration."""
        return any(value.source == GUESS for value in self.values)

    def as_json(self) -> list[dict[str, Any]]:
        """Encode the values for a database row and the API; class names are stored with the version itself."""
        return [
            {"field": row.field, "value": len(row.value) if isinstance(row.value, tuple) else row.value,
             "source": row.source}
            for row in self.values
        ]  # fmt: skip


def detect(files: Files, declared: Declared = NOTHING) -> Detection:
    """Return the most usual declaration that matches the files, and the source of each of its values."""
    declarations, _excluded, refusals = variants.list_candidates(files, declared)
    file_facts = files.merge(declared)
    if not declarations:
        refusals = _refusals_of_usual_layout(files, declared) or refusals
        return Detection(None, tuple(_partial(file_facts, declared, refusals)), tuple(refusals))
    best = declarations[0]
    merged = files.merge(best)
    values = (
        Value("task", best.task, _source(declared.task, file_facts.task, {row.task for row in declarations})),
        Value("layout", best.layout, _source(
            declared.layout, file_facts.layout, {(row.task, row.layout) for row in declarations}
        )),
        _labels(files, best, declared, file_facts),
        _size(files, merged, declared, file_facts),
        *_pixels(best, merged, declared, file_facts),
    )  # fmt: skip
    return Detection(variants.as_import(files, best), values, (), len(declarations))


def _refusals_of_usual_layout(files: Files, declared: Declared) -> list[DomainError]:
    """Return why the declaration does not fit the layout that the files match without it; [] where that is unknown.

    Other layouts read other axes as classes, so that their errors name numbers that mean nothing.
    """
    usual = next(iter(variants.list_candidates(files, NOTHING)[0]), None)
    if usual is None or declared.layout or declared.task not in ("", usual.task):
        return []
    return variants.list_candidates(files, replace(declared, task=usual.task, layout=usual.layout))[2]


def _source(entered: Any, from_file: Any, matches: set[Any]) -> str:
    if entered:
        return ENTERED
    if from_file:
        return FILE
    return SHAPES if len(matches) == 1 else GUESS


def _labels(files: Files, best: Declared, declared: Declared, file_facts: FileFacts) -> Value:
    if declared.labels:
        return Value("labels", declared.labels, ENTERED)
    if file_facts.labels:
        return Value("labels", file_facts.labels, FILE)
    return Value("labels", files.classes(LAYOUTS[best.task][best.layout]) or 0, GUESS)


def _size(files: Files, merged: FileFacts, declared: Declared, file_facts: FileFacts) -> Value:
    shape = files.summary.inputs[0].shape if files.summary.inputs else []
    height, width = (shape[2], shape[3]) if len(shape) == 4 else (0, 0)
    source = GUESS
    if (height > 0 and width > 0) or (file_facts.width and file_facts.height):
        source = FILE
    if declared.width or declared.height:
        source = ENTERED
    width, height = (width if width > 0 else merged.width), (height if height > 0 else merged.height)
    return Value("size", f"{width}×{height}", source)


def _pixels(best: Declared, merged: FileFacts, declared: Declared, file_facts: FileFacts) -> Sequence[Value]:
    source = ENTERED if declared.pixels else FILE if file_facts.mean else GUESS
    resize = ENTERED if declared.resize else USUAL
    name = best.pixels or _pixels_name(merged)
    return Value("pixels", name, source), Value("resize", best.resize, resize)


def _pixels_name(file_facts: FileFacts) -> str:
    own = Pixels(tuple(file_facts.mean), tuple(file_facts.std), BGR if file_facts.blue_first else RGB)
    return next((name for name, pixels in PIXELS.items() if pixels == own), CUSTOM)


def _partial(file_facts: FileFacts, declared: Declared, refusals: Sequence[DomainError]) -> list[Value]:
    """List what is known although no declaration is complete."""
    values = [
        Value(field, value, ENTERED if getattr(declared, field) else FILE)
        for field in ("task", "layout", "labels")
        if (value := getattr(file_facts, field))
    ]
    listed = {value.field for value in values}
    missing = dict.fromkeys(refusal.blamed for refusal in refusals if refusal.blamed)
    return values + [Value(field, "", MISSING) for field in missing if field not in listed | {"file"}]
