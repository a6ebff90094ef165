"""Parameters of a step that are objects, of which one goes into the body of a request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from django.utils.translation import gettext as _

from aiplatform.lib.errors import Invalid, Refusals


def check(params: Mapping[str, Any], own: Collection[str]) -> None:
    """Refuse `params` and `request` that are no objects, and a `request` with what the step says itself.

    Args:
        own: fields of the body that the step fills in.

    Raises:
        Invalid: and what else is wrong.
    """
    refusals = Refusals()
    for name in ("params", "request"):
        with refusals:
            if not isinstance(params.get(name) or {}, Mapping):
                raise Invalid(_("Enter an object: names and values."), field=name)
    more = params.get("request")
    reserved = [name for name in more if name in own] if isinstance(more, Mapping) else []
    with refusals:
        if reserved:
            raise Invalid(_("Set by the step itself: %(names)s.") % {"names": ", ".join(reserved)}, field="request")
    refusals.end()
