"""Values that many services read are read once within `reading()`, which callers with many reads use.

Only for what may be some moments old, such as which machines there are; never for what decides who comes first or who
may do something.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_read: ContextVar[dict[Hashable, object] | None] = ContextVar("read_once", default=None)


@contextmanager
def reading() -> Iterator[None]:
    """Read each value of `get_or_read` once during the block; a nested block is part of the outer one."""
    if _read.get() is not None:
        yield
        return
    token = _read.set({})
    try:
        yield
    finally:
        _read.reset(token)


def get_or_read(name: Hashable, read: Callable[[], T]) -> T:
    """Return what `read` returns, or returned before within the same `reading()`. Callers must not change it."""
    values = _read.get()
    if values is None:
        return read()
    if name not in values:
        values[name] = read()
    return values[name]  # type: ignore[return-value]  # each name belongs to one reader
