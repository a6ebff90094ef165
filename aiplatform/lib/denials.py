"""Callbacks for refused rights; the audit trail registers one."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest

from aiplatform.lib.registry import Registry, dotted_name

Listener = Callable[[HttpRequest, str], None]
#: Called with the request and the refusal's code.
LISTENERS: Registry[Listener] = Registry("listener to refusals", name=dotted_name)

register = LISTENERS.register  # called from AppConfig.ready()


def report(request: HttpRequest | None, code: str) -> None:
    """Report that `request` was refused with 403."""
    if request is not None:
        for listener in LISTENERS:
            listener(request, code)
