"""Every refusal of a right is told to whoever keeps the audit trail."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest

Listener = Callable[[HttpRequest, str], None]
_listeners: list[Listener] = []


def register(listener: Listener) -> None:
    """Called with the request and the refusal's code; once from AppConfig.ready()."""
    if listener not in _listeners:
        _listeners.append(listener)


def tell(request: HttpRequest | None, code: str) -> None:
    """Say that `request` was refused with 403."""
    if request is not None:
        for listener in _listeners:
            listener(request, code)
