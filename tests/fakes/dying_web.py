"""The platform's web application, of which one process dies inside a POST: once, at the place that was asked for.

`AIP_TEST_DEATH` is a file that holds the place; whoever removes it dies.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from aiplatform.asgi import application

__all__ = ["application"]

# Django is set up by now.
from rest_framework.views import APIView

from aiplatform.lib import idempotency
from datasets.services import datasets


def _die(place: str) -> None:
    mark = Path(os.environ["AIP_TEST_DEATH"])
    try:
        if mark.read_text() != place:
            return
        mark.unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def _dying(place: str, act: Callable[..., Any], *, first: bool) -> Callable[..., Any]:
    @wraps(act)
    def dying(*args: Any, **more: Any) -> Any:
        if first:
            _die(place)
        done = act(*args, **more)
        if not first:
            _die(place)
        return done

    return dying


datasets.create = _dying("before the work", datasets.create, first=True)
idempotency.store_response = _dying("before the commit", idempotency.store_response, first=False)
APIView.finalize_response = _dying("after the commit", APIView.finalize_response, first=True)  # type: ignore[method-assign]  # replaced on purpose
