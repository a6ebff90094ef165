"""Query parameters of the API: unknown ones are refused by name.

A filter that is silently ignored misleads a script, and one that reaches the ORM leaks what rows hold
(`?owner__password__startswith=`). So each view says in `asks` what each action reads; nothing else is let in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.request import Request

from aiplatform.lib import ids, ordering
from aiplatform.lib.errors import Invalid

PAGING = ("limit", "cursor")
#: NUL, or half of a surrogate pair: PostgreSQL stores neither, and compares with neither.
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def parameter_names(view: Any) -> tuple[str, ...]:
    """Return the names of the parameters that the running action of `view` reads, `asks` and paging together."""
    asks: Mapping[str, tuple[str, ...]] = getattr(view, "asks", {})
    action = getattr(view, "action", None) or view.request.method.lower()
    pages = PAGING if action == "list" and getattr(view, "pagination_class", None) else ()
    order = (ordering.PARAMETER,) if action == "list" and getattr(view, "orders", None) else ()
    return (*asks.get(action, ()), *order, *pages)


#: Two names of one filter: what a list is searched for. A list documents one of them and takes the other as well.
ALIKE = {"q": "search", "search": "q"}


def rename(view: Any, request: Request) -> None:
    """Let `q` mean `search` where only that is known, and the other way round."""
    names = parameter_names(view)
    for written, meant in ALIKE.items():
        if written in request.query_params and written not in names and meant in names:
            query = request._request.GET.copy()
            query.setlist(meant, [*query.getlist(meant), *query.pop(written)])
            request._request.GET = query  # type: ignore[assignment]  # read from here on, changed no more


def check(view: Any, request: Request) -> None:
    """Accept only parameters the action reads, each once, as text a database can hold.

    Raises:
        Invalid: an unknown name, with the known ones; a name given twice; NUL or half a surrogate pair.
    """
    rename(view, request)
    names = parameter_names(view)
    twice: tuple[str, ...] = getattr(view, "asks_many", ())
    for name, values in request.query_params.lists():
        if name not in names:
            raise Invalid(
                _("Unknown filter %(name)s. Available filters: %(known)s.")
                % {"name": UNSTORABLE.sub("\ufffd", name[:50]), "known": ", ".join(names) or "–"},
                known=list(names),
            )
        if len(values) > 1 and name not in twice:
            raise Invalid(_("Specify %(name)s only once.") % {"name": name})
        if any(UNSTORABLE.search(value) for value in values):
            raise Invalid(_("Text must not contain NUL or unpaired surrogates."))


def read_filters(request: Request) -> dict[str, str]:
    """Return the filters with a value, without paging and order."""
    parameters = request.query_params
    skipped = (*PAGING, ordering.PARAMETER)
    return {name: str(parameters[name]) for name in parameters if parameters[name] and name not in skipped}


def read_int(values: Mapping[str, Any], name: str, default: int | None = None) -> int | None:
    """Return a parameter as a whole number; `default` if it is missing or empty.

    Raises:
        Invalid: it is none, or has more than 18 digits.
    """
    text = str(values.get(name, ""))
    if not text:
        return default
    value = ids.number(text)
    if value is None:
        raise Invalid(_("%(name)s must be an integer.") % {"name": name})
    return value


def read_ints(values: Any, name: str) -> list[int]:
    """Return a repeatable parameter as whole numbers.

    Args:
        values: the parameters of a request, a QueryDict.

    Raises:
        Invalid: one of them is none.
    """
    numbers = [ids.number(text) for text in values.getlist(name)]
    if None in numbers:
        raise Invalid(_("%(name)s must be an integer.") % {"name": name}, field=name)
    return [number for number in numbers if number is not None]


def read_choice(values: Mapping[str, str], name: str, *choices: str) -> str:
    """Return a parameter that must be one of `choices`; "" if it is missing.

    Raises:
        Invalid: another word.
    """
    value = values.get(name, "")
    if value and value not in choices:
        raise Invalid(_("%(name)s must be one of %(words)s.") % {"name": name, "words": ", ".join(choices)})
    return value
