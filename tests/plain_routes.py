"""Routes without a number in their path, and the action of a plain GET."""

from __future__ import annotations

from django.urls import get_resolver

from accounts.access.permissions import Action
from tests.routes import PUBLIC, declares, routes


def plain_routes() -> dict[str, object]:
    """Paths without parameters that answer GET, with their pattern."""
    found = {}
    for path, pattern in routes(get_resolver().url_patterns):
        clean = path.replace("^", "").replace("$", "").replace("\\Z", "")
        if "<" in clean or "(" in clean or pattern.name in PUBLIC or not declares(pattern):
            continue
        found["/" + clean] = pattern
    return found


def action_of(pattern) -> Action | None:
    """The action of a plain GET; None where the route takes no GET."""
    view = pattern.callback
    needs = getattr(view, "needs", None)
    if needs:
        return Action(needs)
    cls = getattr(view, "cls", None) or getattr(view, "view_class", None)
    if isinstance(cls.needs, str):
        return Action(cls.needs) if hasattr(cls, "get") else None
    name = (getattr(view, "actions", None) or {}).get("get")
    return Action(cls.needs[name]) if name else None
