"""Objects that steps name: NAME is the user's own, OWNER/NAME one that its owner shared."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid


def find(rows: Any, name: str, user: User) -> Any | None:
    """The one row of this name; None where there is none.

    Args:
        rows: those that this person may do it with, of a table with `name` and `owner`.
    """
    owner, slash, rest = name.strip().rpartition("/")
    own = {"owner__username": owner} if slash else {"owner": user}
    return rows.filter(name=rest, **own).select_related("owner").first()


def find_required(rows: Any, name: str, user: User, *, field: str) -> Any:
    """Return the row of this name.

    Raises:
        Invalid: there is none that this person may do it with.
    """
    row = find(rows, name, user)
    if row is None:
        message = _(
            "“%(name)s” does not exist, or you do not have this permission for it. For an object of another "
            "user, write OWNER/NAME."
        )
        raise Invalid(message % {"name": name[:120]}, field=field)
    return row
