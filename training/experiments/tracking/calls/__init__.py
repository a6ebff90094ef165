"""The calls of MLflow's API that the platform answers, each a function in a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from aiplatform.lib.registry import Registry
from training.experiments.tracking.body import Body
from training.experiments.tracking.callers import Caller

Answer = dict[str, Any] | HttpResponseBase


@dataclass(frozen=True)
class CallContext:
    """One call: the caller, the fields, and the named segments of its path."""

    caller: Caller
    request: HttpRequest
    body: Body
    at: dict[str, str]


Act = Callable[[CallContext], Answer]


@dataclass(frozen=True)
class Call:
    """The handler of a method and a path. `raw`: the body is a file; `reads`: nothing is changed."""

    method: str
    path: re.Pattern[str]
    handler: Act
    reads: bool
    raw: bool


TRACKING = "api/2.0/mlflow/"
ARTIFACTS = "api/2.0/mlflow-artifacts/artifacts"
CALLS: Registry[Call] = Registry("call", name=lambda call: f"{call.method} {call.path.pattern}")
_STEP = re.compile(r"<(\w+)(:all)?>")


def answers(
    method: str, path: str, *, reads: bool | None = None, raw: bool = False, base: str = TRACKING
) -> Callable[[Act], Act]:
    """Put a function into the table; `<name>` in a path is one step of it, `<name:all>` all that are left.

    Args:
        reads: None: as its method says.
    """

    def register(handler: Act) -> Act:
        pattern = _STEP.sub(lambda step: f"(?P<{step[1]}>{'.+' if step[2] else '[^/]+'})", re.escape(base + path))
        CALLS.register(Call(method, re.compile(pattern), handler, method == "GET" if reads is None else reads, raw))
        return handler

    return register


def find(method: str, path: str) -> tuple[Call, dict[str, str]] | None:
    """The call of a method and a path, with its steps; None for one that the platform does not know."""
    for call in CALLS:
        if call.method == method and (match := call.path.fullmatch(path)):
            return call, match.groupdict()
    return None
