"""Which ways there are to read a model of which not everything is declared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError, Invalid
from inference.kit.contracts.layouts import Layout, Unfit
from inference.kit.model_io.spec import RGB
from inference.registry.formats.declared import BLUE_FIRST, LAYOUTS, RESIZES, Declared, Files

MAX_VARIANTS = 64  # ways that are tried
MAX_CLASSES = 1000  # of a model whose classes nobody named: more of them are cells of a picture, not classes
UNFIT, REFUSED, TOO_MANY = "unfit", "refused", "too_many"


@dataclass(frozen=True)
class ExcludedLayout:
    """A layout that is not tried: a code, and the field whose value is missing or does not fit."""

    task: str
    layout: str
    code: str
    field: str = ""


def list_candidates(files: Files, declared: Declared) -> tuple[list[Declared], list[ExcludedLayout], list[DomainError]]:
    """Return the declarations to try, the more usual first; the layouts excluded already; and their errors.

    What is declared, or said by the files, is the same in all. Where nobody named the classes they are numbered.
    """
    file_facts = files.merge(declared)
    declarations: list[Declared] = []
    excluded: list[ExcludedLayout] = []
    refusals: list[DomainError] = []
    for task, layout in _layouts(file_facts.task, file_facts.layout):
        try:
            base = _base(files, declared, task, layout, named=bool(file_facts.labels))
            files.model_json(_complete(files, base))
        except Unfit:
            excluded.append(ExcludedLayout(task, layout.name, UNFIT))
        except DomainError as exc:
            refusals += exc.every
            excluded.append(ExcludedLayout(task, layout.name, REFUSED, exc.blamed or ""))
        else:
            declarations += _expand(files, base, layout)
    declarations.sort(key=lambda row: row.pixels in BLUE_FIRST)  # rare: after all declarations of all layouts
    excluded += [
        ExcludedLayout(declaration.task, declaration.layout, TOO_MANY) for declaration in declarations[MAX_VARIANTS:]
    ]
    return declarations[:MAX_VARIANTS], list(dict.fromkeys(excluded)), refusals


def describe(files: Files, declarations: Sequence[Declared]) -> dict[str, Any]:
    """Encode them for the program: `kinds`, descriptions as in model.json, and `ways`, each a kind with changes."""
    kinds: dict[Declared, int] = {}
    documents: list[dict[str, Any]] = []
    rows = []
    for declaration in declarations:
        kind = replace(declaration, pixels="", resize="")
        document = files.model_json(_with_labels(files, declaration))
        if kind not in kinds:
            kinds[kind] = len(documents)
            documents.append(document)
        input_fields = document["input"]
        order = input_fields.get("order", RGB)
        rows.append(
            {"kind": kinds[kind], "order": order, **{name: input_fields[name] for name in ("mean", "std", "resize")}}
        )
    return {"kinds": documents, "ways": rows}


def as_spec(declaration: Declared, declared: Declared) -> dict[str, Any]:
    """Return the fields of a declaration that differ from `declared`, small enough for a row."""
    return {
        name: value
        for name, value in asdict(declaration).items()
        if name != "labels" and value != getattr(declared, name)
    }


def from_spec(row: dict[str, Any], declared: Declared) -> Declared:
    """The way that `as_spec` gave."""
    return replace(declared, **row)


def as_import(files: Files, declaration: Declared) -> Declared:
    """Return the complete declaration, as a user who knew it would have made it."""
    return _with_labels(files, declaration)


def _layouts(task: str, layout: str) -> Iterator[tuple[str, Layout]]:
    for name, layouts in LAYOUTS.items():
        if task in ("", name):
            yield from (
                (name, candidate)
                for candidate in layouts.values()
                if layout in ("", candidate.name) or layout not in layouts
            )


def _base(files: Files, declared: Declared, task: str, layout: Layout, *, named: bool) -> Declared:
    """Return the declaration with task, layout and size.

    Raises:
        Unfit: the outputs are not laid out so, or only if they meant many more classes than anybody has.
    """
    count = files.classes(layout)
    if not named and count is not None and not 1 <= count <= MAX_CLASSES:
        raise Unfit
    if not named and count is None:
        message = _(
            "Name the classes of the model, one per line, in the order of its outputs: they cannot be counted "
            "from the file."
        )
        raise Invalid(message, field="labels")
    base = replace(declared, task=task, layout=layout.name)
    file_facts, shape = files.merge(base), files.summary.inputs[0].shape if files.summary.inputs else []
    if len(shape) == 4 and shape[2] < 1 and not file_facts.height:
        base = replace(base, height=layout.side)
    if len(shape) == 4 and shape[3] < 1 and not file_facts.width:
        base = replace(base, width=layout.side)
    return base


def _with_labels(files: Files, declaration: Declared) -> Declared:
    if files.merge(declaration).labels:
        return declaration
    count = files.classes(LAYOUTS[declaration.task][declaration.layout]) or 0
    return replace(declaration, labels=tuple(str(index) for index in range(count)))


def _complete(files: Files, base: Declared) -> Declared:
    """Return the declaration with a value for all that is tried, to see whether the rest of it fits."""
    pixels = base.pixels or ("" if files.merge(base).mean else "unit")
    return _with_labels(files, replace(base, pixels=pixels))


def _expand(files: Files, base: Declared, layout: Layout) -> Iterator[Declared]:
    pixels: Sequence[str] = (base.pixels,) if base.pixels or files.merge(base).mean else layout.pixels
    if not base.pixels and pixels is layout.pixels and files.summary.inputs[0].shape[1] != 1:
        pixels = (*pixels, *BLUE_FIRST)
    resizes = (
        (base.resize,) if base.resize else (layout.resize, *(choice for choice in RESIZES if choice != layout.resize))
    )
    for choice in pixels:
        yield from (replace(base, pixels=choice, resize=resize) for resize in resizes)
