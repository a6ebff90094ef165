"""Secrets that steps name: looked up, when a step begins, as the person whom the run runs as."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import named_secrets
from aiplatform.lib import secret_names
from aiplatform.lib.errors import Invalid, Refusals

_HEADER = re.compile(r"[\x21-\x7e]{1,4096}", re.ASCII)  # what a header line may hold of it


def names_of(value: Any) -> list[str]:
    """The names that a parameter of the form "secret" or "secrets" holds, as far as it is right."""
    given = value if isinstance(value, list) else re.split(r"[\s,;]+", value) if isinstance(value, str) else []
    return [one for one in given if isinstance(one, str) and one and "${" not in one]


def check_request(request: Mapping[str, Any]) -> None:
    """Refuse a request of a command that would hold a secret: everybody who sees the pipeline would read it.

    Raises:
        Invalid: it never holds the value.
    """
    if request.get("secrets"):
        said = _("A pipeline holds no secret: store it at %(page)s, and write its name under “Secrets”.")
        raise Invalid(said % {"page": named_secrets.PAGE}, field="request")
    if named := _with_values(request.get("variables")):
        said = _(
            "%(names)s: the name says that this is a secret. Store it at %(page)s, and write its name under “Secrets”."
        )
        raise Invalid(said % {"names": _listed(named), "page": named_secrets.PAGE}, field="request")


def check_own_code(user: User, request: Any, params: Any) -> None:
    """Refuse a request of own code that would hold a secret; those that it only names must be there.

    Args:
        params: parameters of the code, by name.

    Raises:
        Invalid, MissingSecret: neither holds a value.
    """
    asked = request if isinstance(request, Mapping) else {}
    given = asked.get("secrets")
    named: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    found = Refusals()
    for where, held in (
        ("request", sorted(one for one, value in named.items() if value) + _with_values(asked.get("variables"))),
        ("params", _with_values(params)),
    ):
        with found:
            if held:
                said = _(
                    "%(names)s: a pipeline holds no secret. Store it at %(page)s, and write it under “secrets” of the "
                    "request with an empty value."
                )
                raise Invalid(said % {"names": _listed(held), "page": named_secrets.PAGE}, field=where)
    with found:
        named_secrets.check(user, sorted(one for one, value in named.items() if not value), field="request")
    found.end()


def _with_values(given: Any) -> list[str]:
    """Names that say that they are secret, of those that hold a value."""
    return (
        [str(one) for one in given if secret_names.find_secrets({one: given[one]})]
        if isinstance(given, Mapping)
        else []
    )


def _listed(names: list[str]) -> str:
    return ", ".join(one[:60] for one in names[:10])


def for_header(user: User, name: str, *, field: str) -> str:
    """The value of a secret that goes into a header.

    Raises:
        MissingSecret, Invalid: there is none; it holds what no header may. Neither holds the value.
    """
    value = named_secrets.values(user, [name], field=field)[name]
    if not _HEADER.fullmatch(value):
        said = _("%(name)s cannot stand in a header: it takes letters, digits and signs of ASCII, without spaces.")
        raise Invalid(said % {"name": name}, field=field)
    return value
