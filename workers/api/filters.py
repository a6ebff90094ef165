"""Allow-listed query parameters: what a list does not know, it refuses."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework.request import Request

from aiplatform.lib.errors import Invalid

PAGING = {"limit", "cursor"}


def asked(request: Request, *allowed: str) -> dict[str, str]:
    """The given filters without empty ones.

    Raises:
        Invalid: a parameter that this list does not have, or one given twice.
    """
    found: dict[str, str] = {}
    for name, values in request.query_params.lists():
        if name in PAGING:
            continue
        if name not in allowed:
            raise Invalid(
                _("There is no filter %(name)s here. Known: %(known)s.")
                % {"name": name[:50], "known": ", ".join(allowed) or "–"}
            )
        if len(values) > 1:
            raise Invalid(_("Give %(name)s once.") % {"name": name})
        if values[0]:
            found[name] = values[0]
    return found


def whole(given: dict[str, Any], name: str, otherwise: int | None = None) -> int | None:
    """A parameter as a whole number.

    Raises:
        Invalid: it is none, or too large.
    """
    if name not in given:
        return otherwise
    text = str(given[name])
    if not text.isdecimal() or len(text) > 18:
        raise Invalid(_("%(name)s is a whole number.") % {"name": name})
    return int(text)
