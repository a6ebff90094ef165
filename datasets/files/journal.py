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

MAX_DURATION = timedelta(minutes=5)
"""A rename takes no time; a note that is older is of a process that is gone, wherever it ran."""


def identity(folder: int, name: bytes) -> str:
    """Return what identifies a file whatever its name: the number of its disk and its inode.

    Raises:
        FileNotFoundError: there is nothing of this name.
    """
    status = trees.stat_entry(folder, name)
    return f"{status.st_dev}:{status.st_ino}"


@contextmanager
def noted(user: User, before: str, after: str, what: str) -> Iterator[None]:
    """Note a change of the entry at `before` during the block; shares follow it to `after`, or end if that is "".

    Args:
        what: its identity.

    Raises:
        RuntimeError: within a transaction, which hides the note from other processes and loses it after a kill.
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
    """Let shares follow a change that was not reported as finished, by comparing with the disk."""
    _apply(row, happened=_identity_at(row.owner, row.path) != row.identity)


def settle_left(user: User | None = None) -> int:
    """Settle changes of processes that have ended, of one user or of all; returns their number."""
    left = _left(HomeChange.objects.filter(owner=user) if user else HomeChange.objects.all())
    for row in left:
        settle(row)
    return len(left)


def is_unsettled(owner: User, path: str) -> bool:
    """Return whether a share of this path is closed for now, because the entry at the path may have changed."""
    return any(_covers(row.path, path) or _covers(row.to, path) for row in HomeChange.objects.filter(owner=owner))


def _left(rows: QuerySet[HomeChange]) -> list[HomeChange]:
    old = now() - MAX_DURATION
    return [row for row in rows.select_related("owner") if row.created_at < old or claims.is_gone(row.holder)]


@transaction.atomic
def _apply(row: HomeChange, *, happened: bool) -> None:
    if not HomeChange.objects.filter(pk=row.pk).delete()[0]:
        return  # another process settled it
    if happened and row.to and _identity_at(row.owner, row.to) == row.identity:
        share_paths.follow(row.owner, row.path, row.to)
    elif happened:
        share_paths.delete_below(row.owner, row.path)


def _identity_at(user: User, path: str) -> str:
    """Return the identity of the entry at a path; "" if there is none."""
    try:
        *folders, name = file_names.parse(path)
        with trees.opened(homes.path_of(user), folders) as above:
            return identity(above, name)
    except (OSError, Invalid):
        return ""


def _covers(above: str, path: str) -> bool:
    return bool(above) and (path == above or path.startswith(f"{above}/"))
