"""Folders of a home that others may read. With whom is said on the page that all shared things have."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.access import sharing
from accounts.models import User
from aiplatform.lib.errors import Invalid
from datasets.files import listing, paths
from datasets.files.models import MAX_PATH_LENGTH, SharedFolder


def prepare(user: User, path: str) -> SharedFolder:
    """Return the row of a folder that is to be shared; no other user sees it before it is shared with them.

    Raises:
        Invalid: no folder, the whole home, or too long a path.
        NotFound, Closed.
    """
    location = paths.own(user, path)
    if not location.parts:
        raise Invalid(_("Share a folder of your home, not the whole home."), field="path")
    if not listing.get_entry(location).is_folder:
        raise Invalid(_("Only folders can be shared. Put the file into a folder."), field="path")
    if len(location.path) > MAX_PATH_LENGTH:
        raise Invalid(_("This path is too long to be shared. Move the folder to a higher level."), field="path")
    return SharedFolder.objects.get_or_create(owner=user, path=location.path)[0]


def with_others(user: User) -> list[SharedFolder]:
    """Own folders that at least one other may read."""
    return [row for row in SharedFolder.objects.filter(owner=user) if sharing.shares_of(row)]


def with_me(user: User) -> list[SharedFolder]:
    """Folders of others that this person may read, of people whose account is there."""
    rows = SharedFolder.objects.visible_to(user).exclude(owner=user).filter(owner__deleted_at=None)
    return list(rows.select_related("owner").order_by("owner__username", "path"))
