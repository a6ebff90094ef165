"""Public data sets, where a folder above the checkout keeps them as `shared/data`; elsewhere tests go without."""

from __future__ import annotations

from pathlib import Path

import pytest


def find(*parts: str) -> Path | None:
    """A file or folder of the public data, for instance `find("nuts", "coco")`; None where it is not."""
    for parent in Path(__file__).resolve().parents[2:]:
        if (path := parent.joinpath("shared", "data", *parts)).exists():
            return path
    return None


def need(*parts: str) -> Path:
    """The same for a test, which is skipped where it is not."""
    path = find(*parts)
    if path is None:
        pytest.skip(f"the public data {'/'.join(parts)} is not on this machine")
    return path
