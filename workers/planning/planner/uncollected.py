"""Functions that the collector of cycles leaves alone while they run."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def uncollected(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a short function that makes many objects and no cycles among them.

    The collector would look through all of them again and again, and find nothing. Who found it switched on switches
    it on again: where several threads run such functions, the last one never leaves it switched off.
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        collects = gc.isenabled()
        gc.disable()
        try:
            return function(*args, **kwargs)
        finally:
            if collects:
                gc.enable()

    return run
