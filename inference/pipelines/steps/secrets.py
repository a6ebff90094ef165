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
    """Return the valid names of a parameter of the form "secret" or "secrets"."""
    names = value if isinstance(value, list) else re.split(r"[\s,;]+", value) if isinstance(value, str) else []
    return [name for name in names if isinstance(name, str) and name and "${" not in name]


def check_request(request: Mapping[str, Any]) -> None:
    """Refuse a request of a command that contains a secret: all users who see the pipeline could read it.

    Raises:
        Invalid: it never holds the value.
    """
    if request.get("secrets"):
        message = _("A pipeline cannot contain secrets: store it at %(page)s, and enter its name under “Secrets”.")
        raise Invalid(message % {"page": named_secrets.PAGE}, field="request")
    if named := _with_values(request.get("variables")):
        message = _("%(names)s: the name indicates a secret. Store it at %(page)s, and enter its name under “Secrets”.")
        raise Invalid(message % {"names": _listed(named), "page": named_secrets.PAGE}, field="request")


def check_own_code(user: User, request: Any, params: Any) -> None:
    """Refuse a request of custom code that contains a secret; named secrets must exist.

    Args:
        params: parameters of the code, by name.

    Raises:
        Invalid, MissingSecret: neither holds a value.
    """
    body = request if isinstance(request, Mapping) else {}
    body_secrets = body.get("secrets")
    named: Mapping[str, Any] = body_secrets if isinstance(body_secrets, Mapping) else {}
    refusals = Refusals()
    for where, held in (
        ("request", sorted(name for name, value in named.items() if value) + _with_values(body.get("variables"))),
        ("params", _with_values(params)),
    ):
        with refusals:
            if held:
                message = _(
                    "%(names)s: a pipeline cannot contain secrets. Store it at %(page)s, and enter it under "
                    "“secrets” of the request with an empty value."
                )
                raise Invalid(message % {"names": _listed(held), "page": named_secrets.PAGE}, field=where)
    with refusals:
        named_secrets.check(user, sorted(name for name, value in named.items() if not value), field="request")
    refusals.end()


def _with_values(values: Any) -> list[str]:
    """Return the names that indicate a secret and have a value."""
    return (
        [str(name) for name in values if secret_names.find_secrets({name: values[name]})]
        if isinstance(values, Mapping)
        else []
    )


def _listed(names: list[str]) -> str:
    return ", ".join(name[:60] for name in names[:10])


def for_header(user: User, name: str, *, field: str) -> str:
    """Return the value of a secret for use in a header.

    Raises:
        MissingSecret, Invalid: there is none; it holds what no header may. Neither holds the value.
    """
    value = named_secrets.values(user, [name], field=field)[name]
    if not _HEADER.fullmatch(value):
        message = _(
            "%(name)s is not valid in a header: it can contain letters, digits and ASCII symbols, without spaces."
        )
        raise Invalid(message % {"name": name}, field=field)
    return value
