"""Notebooks as they are read, not run: text, code, and what it printed. Nothing of theirs is ever HTML here."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_CELLS = 500
MAX_OUTPUTS = 50  # of one cell
MAX_TEXT_LENGTH = 50_000  # characters of one cell or output
MAX_IMAGE_BYTES = 8 << 20  # of all pictures together, in base64
#: The beginnings by which a browser knows a picture; nothing else is given to it as one.
PICTURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff"}
_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[@-_]")


class NoNotebook(ValueError):
    """It calls itself a notebook and is none."""


@dataclass(frozen=True)
class Output:
    """What a cell left: text, or a picture as an address that holds it."""

    text: str = ""
    picture: str = ""
    is_error: bool = False
    left_out: bool = False  # something active or unknown, which is not shown


@dataclass(frozen=True)
class Cell:
    kind: str  # markdown, code or raw
    source: str
    number: str = ""  # how often the notebook had run when it ran
    outputs: list[Output] = field(default_factory=list)


@dataclass(frozen=True)
class Notebook:
    cells: list[Cell]
    language: str
    more: bool


def read(data: bytes) -> Notebook:
    """Read a notebook file of format 4, whatever is wrong in single cells.

    Raises:
        NoNotebook: it is not JSON with cells.
    """
    try:
        book = json.loads(data)
    except (ValueError, RecursionError):
        raise NoNotebook from None
    if not isinstance(book, dict) or not isinstance(book.get("cells"), list):
        raise NoNotebook
    room = [MAX_IMAGE_BYTES]
    entries = [cell for cell in book["cells"] if isinstance(cell, dict)]
    cells = [_cell(cell, room) for cell in entries[:MAX_CELLS]]
    return Notebook(cells, _language(book), more=len(entries) > MAX_CELLS)


def _language(book: dict[str, Any]) -> str:
    metadata = book.get("metadata")
    kernel = metadata.get("kernelspec") if isinstance(metadata, dict) else None
    name = kernel.get("display_name") if isinstance(kernel, dict) else None
    return _text(name)[:100]


def _cell(cell: dict[str, Any], room: list[int]) -> Cell:
    kind = cell.get("cell_type")
    kind = kind if isinstance(kind, str) and kind in {"markdown", "code"} else "raw"
    count = cell.get("execution_count")
    outputs = cell.get("outputs") if kind == "code" else None
    return Cell(
        kind,
        _text(cell.get("source")),
        str(count) if isinstance(count, int) and 0 <= count < 10**9 else "",
        list(_outputs(outputs, room)) if isinstance(outputs, list) else [],
    )


def _outputs(outputs: list[Any], room: list[int]) -> Iterator[Output]:
    for output in outputs[:MAX_OUTPUTS]:
        if not isinstance(output, dict):
            continue
        kind, data = output.get("output_type"), output.get("data")
        if kind == "stream":
            yield Output(_text(output.get("text")), is_error=output.get("name") == "stderr")
        elif kind == "error":
            lines = output.get("traceback")
            yield Output(_text("\n".join(map(str, lines[:200])) if isinstance(lines, list) else ""), is_error=True)
        elif isinstance(data, dict):
            yield _best(data, room)


def _best(data: dict[str, Any], room: list[int]) -> Output:
    """The picture of an output, else its plain text."""
    for kind, beginning in PICTURES.items():
        if picture := _image(data.get(kind), kind, beginning, room):
            return Output(picture=picture)
    if "text/plain" in data:
        return Output(_text(data["text/plain"]))
    return Output(left_out=True)


def _image(source: Any, kind: str, signature: bytes, room: list[int]) -> str:
    text = "".join(map(str, source)) if isinstance(source, list) else source
    if not isinstance(text, str) or not 0 < len(text) <= room[0]:
        return ""
    try:
        bytes_ = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return ""
    if not bytes_.startswith(signature):
        return ""
    room[0] -= len(text)
    return f"data:{kind};base64,{base64.b64encode(bytes_).decode()}"


def _text(source: Any) -> str:
    """Return lines of a notebook as one text, without terminal colors."""
    lines = [line for line in source if isinstance(line, str)] if isinstance(source, list) else [source]
    text = "".join(line for line in lines if isinstance(line, str))[: 2 * MAX_TEXT_LENGTH]
    decoded = text.encode("utf-8", "replace").decode()  # JSON may hold half of a surrogate pair
    return _COLOURS.sub("", decoded)[:MAX_TEXT_LENGTH]
