"""The image below a saved one: who may save on top of it, and whom the result may be shown to.

What is saved holds all of the image below, or needs it to start. So it is seen by no more people than that one, unless
both are the same person's. The bound is noted with the saved image (`Image.widest`): the image below may go.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User, UserGroup
from aiplatform.lib.errors import Invalid
from workers.images.models import Image, Visibility

WIDER = (Visibility.PRIVATE, Visibility.GROUP, Visibility.PUBLIC)


def is_usable(below: Image, by: User) -> bool:
    """Whether this person may still use the image that a job was begun with."""
    return Image.objects.usable_by(by).filter(pk=below.pk).exists()


def widest(below: Image, by: User) -> Visibility:
    """Whom at most an image may be shown to that this person saves on top of another."""
    own = Visibility(below.widest)
    if below.owner_id in (None, by.pk):
        return own
    return min(own, _widest_of(below, by), key=WIDER.index)


def _widest_of(below: Image, by: User) -> Visibility:
    """Widest visibility above another owner's image: groups count where this user's are all the owner's too."""
    if below.visibility != Visibility.GROUP:
        return Visibility(below.visibility)
    other = UserGroup.objects.filter(users=by).exclude(users=below.owner)
    return Visibility.PRIVATE if other.exists() else Visibility.GROUP


def check(below: Image, by: User, visibility: str) -> None:
    """Refuse to share a saved image with more users than the image below.

    Raises:
        Invalid: says whom to ask.
    """
    limit = widest(below, by)
    if visibility in WIDER and WIDER.index(Visibility(visibility)) > WIDER.index(limit):
        text = _(
            "The image is based on %(name)s of %(owner)s, so its visibility can be at most “%(most)s”. Request "
            "more access, or choose that."
        )
        raise Invalid(text % {"name": below, "owner": below.owner, "most": limit.label}, field="visibility")


def check_wider(image: Image, visibility: str) -> None:
    """Refuse to share a saved image with more users than its limit.

    Raises:
        Invalid: says what to do.
    """
    limit = Visibility(image.widest)
    if WIDER.index(Visibility(visibility)) > WIDER.index(limit):
        text = _(
            "The image was saved on top of an image of another user, so its visibility can be at most "
            "“%(most)s”. Ask that user to share theirs, then save it again."
        )
        raise Invalid(text % {"most": limit.label}, field="visibility")


def check_share(image: Image) -> None:
    """Refuse to share a saved image with single people and groups where the one below is not everybody's.

    Raises:
        Invalid: see `check_wider`.
    """
    check_wider(image, Visibility.PUBLIC)


def shown_facts(image: Image, bases: set[int]) -> dict[str, object]:
    """Facts of an image for people: where it was saved from a container image, that one's name is for who sees it.

    Args:
        bases: numbers of the images that this person sees, see `bases_seen`.
    """
    hidden = {"base_image"} if image.contents.get("base_image") in bases else {"base_image", "base"}
    return {name: value for name, value in image.contents.items() if name not in hidden}


def bases_seen(user: User) -> set[int]:
    """Numbers of the container images that a person sees and others may stand on."""
    rows = Image.objects.visible_to(user).filter(kind=Image.Kind.CONTAINER).exclude(source=Image.Source.SAVED)
    return set(rows.values_list("pk", flat=True))
