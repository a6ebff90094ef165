"""Change and delete images."""

from __future__ import annotations

import time

from django.db import transaction
from django.db.models import ProtectedError
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib.errors import Invalid, StillInUse
from workers.images import usage
from workers.images.models import Image, State, Visibility
from workers.images.services import saving
from workers.images.store import below, engines, paths

MIN_AGE_S = 3600.0  # what is younger may be in the making


def edit(*, image: Image, description: str, visibility: str) -> Image:
    """Change an image's description and its visibility. Running jobs continue.

    Raises:
        Invalid: no such visibility, or more people than the image below allows.
    """
    if visibility not in Visibility.values:
        raise Invalid(_("The visibility of an image must be private, groups or public."), field="visibility")
    below.check_wider(image, visibility)
    image.description, image.visibility = description, visibility
    image.save(update_fields=["description", "visibility"])
    return image


def make(image: Image, *, by: User) -> None:
    """Have an image made that is not there: its engine built, or what a job installed saved once more.

    Raises:
        CannotSave: nothing to be saved (any more).
        NotAMember, OverLimit, NeverFits: a job that builds the engine cannot be started.
    """
    if image.is_saved:
        saving.again(image, by=by)
    else:
        engines.ensure(image, by=by)


def delete(*, image: Image, by: User) -> None:
    """Delete an image that nothing needs; an engine's folder goes with the last image that names it.

    Raises:
        StillInUse: says by whom.
    """
    if image.status == State.SAVING:
        raise StillInUse(_("The image is being saved. Wait until that is done."))
    if users := usage.users_of(image):
        raise StillInUse(
            _("%(image)s is still used by %(users)s.") % {"image": image, "users": ", ".join(users)},
        )
    pk = image.pk
    try:
        with transaction.atomic():
            audit.record(by, "image_deleted", image)
            image.delete()
    except ProtectedError:
        raise StillInUse(_("Another user just saved an image on top of it.")) from None
    paths.packed(pk).unlink(missing_ok=True)


def clean_layers() -> None:
    """Delete unpacked layers on this node without an image, and remains of killed unpackers."""
    folder = paths.layer("x").parent
    if not folder.is_dir():
        return
    checksums = set(Image.objects.filter(kind=Image.Kind.SAVED).values_list("sha256", flat=True))
    saving = Image.objects.filter(state=State.SAVING).exists()
    for path in folder.iterdir():
        old = time.time() - path.stat().st_mtime > MIN_AGE_S
        if path.name not in checksums and old and not saving:
            paths.remove(path)
