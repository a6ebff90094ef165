"""Format amounts for people."""

from __future__ import annotations

MIB_PER_GIB = 1024


def memory(mib: int) -> str:
    """400 → "400 MiB", 81920 → "80 GiB". One unit everywhere: 1 GiB is 1024 MiB."""
    if mib >= MIB_PER_GIB:
        return f"{number(mib / MIB_PER_GIB)} GiB"
    return f"{mib} MiB"


def size(amount: int) -> str:
    """Bytes in the largest unit that keeps them at least 1: 1536 → "1.5 KiB", 2**40 → "1 TiB"."""
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            return f"{number(value)} {unit}"
        value /= 1024
    return f"{number(value)} PiB"


class Count(int):
    """How many there are: written "12,345" in every language, and still a number that chooses a plural."""

    def __str__(self) -> str:
        return f"{int(self):,}"


class Unknown(Count):
    """An unknown count: displayed as "–", and treated by plural forms as nothing."""

    def __str__(self) -> str:
        return "–"


def number(value: float) -> str:
    """2.0 → "2", 0.25 → "0.25"."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
