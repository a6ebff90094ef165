"""What virtual people asked for and what they were told, a line of JSON each, in the order it happened."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Ledger:
    """Appends facts to a file. `kind` says which: see `tests/chaos/crowd_checker.py`, which reads them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def say(self, kind: str, **facts: Any) -> None:
        self._file.write(json.dumps({"kind": kind, "at": time.time(), **facts}) + "\n")


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the facts of a ledger; a last line that was cut is left out."""
    if not path.exists():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.endswith("}"):
            yield json.loads(line)
