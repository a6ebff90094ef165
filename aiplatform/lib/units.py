"""Format amounts for people."""

from __future__ import annotations

MIB_PER_GIB = 1024


def memory(mib: int) -> str:
    """400 → "400 MiB", 81920 → "80 GiB". One unit everywhere: 1 GiB is 1024 MiB."""
    if mib >= MIB_PER_GIB:
        return f"{number(mib / MIB_PER_GIB)} GiB"
    return f"{mib} MiB"


def number(value: float) -> str:
    """2.0 → "2", 0.25 → "0.25"."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
