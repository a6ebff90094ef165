"""Paths of shared folders, which follow what people do to the folders."""

from __future__ import annotations

from django.db import transaction

from accounts.models import User
from datasets.files.models import MAX_PATH_LENGTH, SharedFolder


@transaction.atomic
def follow(user: User, before: str, after: str) -> None:
    """A folder has another path: shares of it and of folders in it have it too."""
    for row in _below(user, before):
        moved = after + row.path[len(before) :]
        SharedFolder.objects.filter(owner=user, path=moved).exclude(pk=row.pk).delete()
        if len(moved) > MAX_PATH_LENGTH:
            row.delete()
            continue
        row.path = moved
        row.save(update_fields=["path"])


def delete_below(user: User, path: str) -> None:
    """End shares of a deleted folder and of the folders in it, so that later folders of these names are not shared."""
    for row in _below(user, path):
        row.delete()


def _below(user: User, path: str) -> list[SharedFolder]:
    rows = SharedFolder.objects.filter(owner=user)
    return [row for row in rows if not path or row.path == path or row.path.startswith(f"{path}/")]
