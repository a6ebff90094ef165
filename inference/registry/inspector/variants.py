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

MOST = 64  # ways that are tried
MOST_CLASSES = 1000  # of a model whose classes nobody named: more of them are cells of a picture, not classes
UNFIT, REFUSED, TOO_MANY = "unfit", "refused", "too_many"


@dataclass(frozen=True)
class Out:
    """A layout that is not tried: a code, and the field whose value is missing or does not fit."""

    task: str
    layout: str
    code: str
    field: str = ""


def of(files: Files, declared: Declared) -> tuple[list[Declared], list[Out], list[DomainError]]:
    """Declarations to try, the more usual first; the layouts that fell out already; and what those are refused for.

    What is declared, or said by the files, is the same in all. Where nobody named the classes they are numbered.
    """
    said = files.known(declared)
    ways: list[Declared] = []
    out: list[Out] = []
    refusals: list[DomainError] = []
    for task, layout in _layouts(said.task, said.layout):
        try:
            base = _base(files, declared, task, layout, named=bool(said.labels))
            files.model_json(_whole(files, base))
        except Unfit:
            out.append(Out(task, layout.name, UNFIT))
        except DomainError as exc:
            refusals += exc.every
            out.append(Out(task, layout.name, REFUSED, exc.blamed or ""))
        else:
            ways += _ways(files, base, layout)
    ways.sort(key=lambda way: way.pixels in BLUE_FIRST)  # of few models: behind all ways of all layouts
    out += [Out(way.task, way.layout, TOO_MANY) for way in ways[MOST:]]
    return ways[:MOST], list(dict.fromkeys(out)), refusals


def described(files: Files, ways: Sequence[Declared]) -> dict[str, Any]:
    """The same for the program: `kinds`, descriptions as of model.json, and `ways`, each one of them with changes."""
    kinds: dict[Declared, int] = {}
    whole: list[dict[str, Any]] = []
    rows = []
    for way in ways:
        kind = replace(way, pixels="", resize="")
        known = files.model_json(_numbered(files, way))
        if kind not in kinds:
            kinds[kind] = len(whole)
            whole.append(known)
        seen = known["input"]
        order = seen.get("order", RGB)
        rows.append({"kind": kinds[kind], "order": order, **{name: seen[name] for name in ("mean", "std", "resize")}})
    return {"kinds": whole, "ways": rows}


def as_spec(way: Declared, declared: Declared) -> dict[str, Any]:
    """What of a way is not declared anyway, small enough for a row."""
    return {name: value for name, value in asdict(way).items() if name != "labels" and value != getattr(declared, name)}


def from_spec(row: dict[str, Any], declared: Declared) -> Declared:
    """The way that `as_spec` gave."""
    return replace(declared, **row)


def as_import(files: Files, way: Declared) -> Declared:
    """The whole declaration of a way, as somebody who knew it would have made it."""
    return _numbered(files, way)


def _layouts(task: str, layout: str) -> Iterator[tuple[str, Layout]]:
    for name, known in LAYOUTS.items():
        if task in ("", name):
            yield from ((name, one) for one in known.values() if layout in ("", one.name) or layout not in known)


def _base(files: Files, declared: Declared, task: str, layout: Layout, *, named: bool) -> Declared:
    """The declaration with task, layout and size.

    Raises:
        Unfit: the outputs are not laid out so, or only if they meant many more classes than anybody has.
    """
    count = files.classes(layout)
    if not named and count is not None and not 1 <= count <= MOST_CLASSES:
        raise Unfit
    if not named and count is None:
        said = _(
            "Name the classes of the model, one a line, in the order of its outputs: they cannot be counted in it."
        )
        raise Invalid(said, field="labels")
    base = replace(declared, task=task, layout=layout.name)
    known, shape = files.known(base), files.summary.inputs[0].shape if files.summary.inputs else []
    if len(shape) == 4 and shape[2] < 1 and not known.height:
        base = replace(base, height=layout.side)
    if len(shape) == 4 and shape[3] < 1 and not known.width:
        base = replace(base, width=layout.side)
    return base


def _numbered(files: Files, way: Declared) -> Declared:
    if files.known(way).labels:
        return way
    count = files.classes(LAYOUTS[way.task][way.layout]) or 0
    return replace(way, labels=tuple(str(place) for place in range(count)))


def _whole(files: Files, base: Declared) -> Declared:
    """The declaration with something for all that is tried, to see whether the rest of it fits."""
    pixels = base.pixels or ("" if files.known(base).mean else "unit")
    return _numbered(files, replace(base, pixels=pixels))


def _ways(files: Files, base: Declared, layout: Layout) -> Iterator[Declared]:
    pixels: Sequence[str] = (base.pixels,) if base.pixels or files.known(base).mean else layout.pixels
    if not base.pixels and pixels is layout.pixels and files.summary.inputs[0].shape[1] != 1:
        pixels = (*pixels, *BLUE_FIRST)
    resizes = (base.resize,) if base.resize else (layout.resize, *(one for one in RESIZES if one != layout.resize))
    for one in pixels:
        yield from (replace(base, pixels=one, resize=resize) for resize in resizes)
