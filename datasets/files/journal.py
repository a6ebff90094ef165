"""Journal of home folders: a rename or deletion is noted before it happens, so that shares never outlive it.

A share is a path, and the file system knows nothing of shares. Between a rename and the rows that follow it a share
would open whatever is put at its old path, and a process that is killed there would leave it so. While a change is
noted, shares of its paths rest; whoever finds a note of a dead process looks at the disk to see how it ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils.timezone import now

from accounts.models import User
from aiplatform.lib import claims, file_names, trees
from aiplatform.lib.errors import Invalid
from datasets.files import homes, share_paths
from datasets.files.models import HomeChange

LONGEST = timedelta(minutes=5)
"""A rename takes no time; a note that is older is of a process that is gone, wherever it ran."""


def identity(folder: int, name: bytes) -> str:
    """What something is, whatever its name: the number of its disk, and its number there.

    Raises:
        FileNotFoundError: there is nothing of this name.
    """
    about = trees.about(folder, name)
    return f"{about.st_dev}:{about.st_ino}"


@contextmanager
def noted(user: User, before: str, after: str, what: str) -> Iterator[None]:
    """Change what stands at `before` within; shares follow it to `after`, or end where that is "".

    Args:
        what: its identity.

    Raises:
        RuntimeError: within a transaction, where nobody would see the note before the change, nor after a kill.
    """
    with transaction.atomic(durable=True):
        row = HomeChange.objects.create(owner=user, path=before, to=after, identity=what, holder=claims.new_holder())
    try:
        yield
    except Exception:
        settle(row)
        raise
    _apply(row, happened=True)


def settle(row: HomeChange) -> None:
    """Let shares follow a change whose end nobody told, by what stands on the disk."""
    _apply(row, happened=_identity_at(row.owner, row.path) != row.identity)


def settle_left(user: User | None = None) -> int:
    """Settle what processes that are gone left, of one person or of all; returns how many changes that were."""
    left = _left(HomeChange.objects.filter(owner=user) if user else HomeChange.objects.all())
    for row in left:
        settle(row)
    return len(left)


def rests(owner: User, path: str) -> bool:
    """Whether a share of this path is closed for now, since what stands there may be something else."""
    return any(_covers(row.path, path) or _covers(row.to, path) for row in HomeChange.objects.filter(owner=owner))


def _left(rows: QuerySet[HomeChange]) -> list[HomeChange]:
    old = now() - LONGEST
    return [row for row in rows.select_related("owner") if row.created_at < old or claims.is_gone(row.holder)]


@transaction.atomic
def _apply(row: HomeChange, *, happened: bool) -> None:
    if not HomeChange.objects.filter(pk=row.pk).delete()[0]:
        return  # somebody else settled it
    if happened and row.to and _identity_at(row.owner, row.to) == row.identity:
        share_paths.follow(row.owner, row.path, row.to)
    elif happened:
        share_paths.forget_below(row.owner, row.path)


def _identity_at(user: User, path: str) -> str:
    """The identity of what stands at a path; "" for nothing."""
    try:
        *way, name = file_names.parse(path)
        with trees.opened(homes.path_of(user), way) as above:
            return identity(above, name)
    except (OSError, Invalid):
        return ""


def _covers(above: str, path: str) -> bool:
    return bool(above) and (path == above or path.startswith(f"{above}/"))
