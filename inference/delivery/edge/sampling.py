"""Pictures that devices keep for annotation: the rule of a group, and what devices send."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import User
from accounts.services import audit
from aiplatform.lib.errors import DomainError, Invalid, Refusals
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from inference.serving.feedback import samples
from inference.serving.feedback.models import ServiceSample
from inference.serving.server import image_sampling

MAX_BYTES = 2 << 20  # of a picture
MAX_DAYS = 90


class SamplesOff(DomainError, code="samples_off"):
    """The group keeps no pictures, or no longer."""


def set_rule(*, group: EdgeGroup, percent: int, below: int, days: int, by: User) -> EdgeGroup:
    """Set which images the devices of a group store; they receive it with their next release.

    Args:
        percent: of all that they answer, by chance; 0: none.
        below: those that have an answer with a lower score, in percent; 0: none.
        days: that they wait here for annotation.

    Raises:
        Invalid: a number is out of bounds.
    """
    refusals = Refusals()
    for field, value, minimum, maximum in (
        ("keep_percent", percent, 0, 100), ("keep_below", below, 0, 100), ("keep_days", days, 1, MAX_DAYS),
    ):  # fmt: skip
        with refusals:
            if not minimum <= value <= maximum:
                message = _("Must be an integer from %(least)d to %(most)d.") % {
                    "least": minimum,
                    "most": maximum,
                }
                raise Invalid(message, field=field)
    refusals.end()
    with transaction.atomic():
        locked = EdgeGroup.objects.select_for_update().get(pk=group.pk)
        locked.keep_percent, locked.keep_below, locked.keep_days = percent, below, days
        locked.number += 1  # an older word, which kept pictures, is refused from now on
        locked.save(update_fields=["keep_percent", "keep_below", "keep_days", "number"])
        audit.record(by, "edge_samples_set", locked, percent=percent, below=below, days=days)
    return locked


def rule_of(group: EdgeGroup) -> dict[str, float] | None:
    """What a word says of pictures to keep; None where none are."""
    return {"percent": group.keep_percent, "below": group.keep_below / 100} if group.keeps else None


def store(*, device: EdgeDevice, picture: bytes, answers: Any, why: str, package: str) -> ServiceSample:
    """Store an image that a device sent; the same image once, however often it arrives.

    Args:
        answers: `predictions` that the device gave.
        package: sha256 of what it answered with.

    Raises:
        SamplesOff: the group keeps no pictures.
        Invalid: it is no JPEG, or more than 2 MiB; or the reason is unknown.
        TooManySamples, TooLarge, DiskFull: there is no room; later there may be.
    """
    group: EdgeGroup = device.group
    if not group.keeps:
        raise SamplesOff(_("This group stores no images of its devices."))
    if why not in (image_sampling.LOW, image_sampling.CHANCE):
        raise Invalid(_("Images are stored at random or because of low confidence."), field="why")
    if len(picture) > MAX_BYTES or not picture.startswith(b"\xff\xd8\xff"):
        raise Invalid(_("Devices send JPEG images of at most %(most)s MiB.") % {"most": MAX_BYTES >> 20}, field="image")
    packages = (candidate for candidate in (group.wanted, group.before) if candidate is not None)
    label = next((candidate.model_label for candidate in packages if candidate.sha256 == package), "")
    return samples.store(
        holder=group, picture=picture, answers=answers, by=None, why=why, model_name=label, device=device.name
    )


HOLDER = samples.HolderKind(EdgeGroup, "edge/samples")
