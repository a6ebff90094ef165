"""Check the header of a safetensors file against the bytes that follow."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from django.utils.translation import gettext as _

from inference.registry.formats.onnx import RefusedModel
from inference.registry.formats.shapes import ImpossibleShape, count_values

MAX_HEADER_BYTES = 8 << 20  # some 80,000 tensors
MAX_TENSORS = 100_000
MAX_DIGITS = 20  # of an offset or a size
WIDTHS = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E5M2": 1, "F8_E4M3": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8,
}  # fmt: skip


def inspect(path: Path) -> tuple[int, int]:
    """Count tensors and values of the file.

    Raises:
        RefusedModel: the header is too long, is not JSON, or its tensors overlap, leave gaps or do not fit.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(8)
        if len(head) < 8:
            raise RefusedModel(_("The safetensors file is too short to have a header."))
        (length,) = struct.unpack("<Q", head)
        if length > size - 8:
            raise RefusedModel(_("The safetensors header declares more bytes than the file has."))
        if length > MAX_HEADER_BYTES:
            message = _("The safetensors header is larger than %(most)s MiB.")
            raise RefusedModel(message % {"most": MAX_HEADER_BYTES >> 20})
        try:
            header = json.loads(file.read(length), parse_int=_parse_int)
        except (ValueError, RecursionError):
            raise RefusedModel(_("The safetensors header is invalid.")) from None
    if not isinstance(header, dict):
        raise RefusedModel(_("The safetensors header is not a table of tensors."))
    if len(header) > MAX_TENSORS:
        raise RefusedModel(_("The model has more than %(most)s tensors.") % {"most": f"{MAX_TENSORS:,}"})
    spans: list[tuple[int, int]] = []
    values = 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end, count = _entry(name, entry)
        spans.append((begin, end))
        values += count
    at = 0
    for begin, end in sorted(spans):
        if begin != at:
            raise RefusedModel(_("The tensors of the safetensors file overlap or leave gaps."))
        at = end
    if at != size - 8 - length:
        raise RefusedModel(_("The tensors of the safetensors file do not fill the file."))
    return len(spans), values


def _parse_int(digits: str) -> int:
    """Parse an integer; one with more digits than any offset has becomes -1, which is out of range."""
    return int(digits) if len(digits) <= MAX_DIGITS else -1


def _entry(name: str, entry: object) -> tuple[int, int, int]:
    """Return start, end and number of values of a tensor."""
    message = _("The tensor “%(name)s” of the safetensors file has an invalid description.")
    broken = RefusedModel(message % {"name": name[:80]})
    if not isinstance(entry, dict):
        raise broken
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if dtype not in WIDTHS or not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise broken
    if not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 1 << 62 for n in [*shape, *offsets]):
        raise broken
    begin, end = offsets
    try:
        count = count_values(shape)
    except ImpossibleShape:
        raise broken from None
    if end - begin != count * WIDTHS[dtype]:
        raise broken
    return begin, end, count
