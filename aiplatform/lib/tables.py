"""CSV for spreadsheets: opens right and runs no formulas."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import IO

FORMULA = ("=", "+", "-", "@", "\t", "\r")
BOM = "\ufeff"  # spreadsheets read UTF-8 only with this mark


def cell(value: object) -> str:
    """Text of one cell that no spreadsheet takes for a formula; a number stays one, and None is empty."""
    if isinstance(value, (int, float)):
        return str(value)
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def write_csv(out: IO[str], header: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Write a table with one line per row, every cell guarded."""
    write_rows(out, [header])
    write_rows(out, rows)


def write_rows(out: IO[str], rows: Iterable[Iterable[object]]) -> None:
    """Write lines of a table whose header is written already."""
    csv.writer(out).writerows([cell(value) for value in row] for row in rows)
