"""Who uses an image, so that nothing in use is deleted."""

from __future__ import annotations

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from workers.core import kinds
from workers.core.states import FINAL
from workers.images.models import Image, ImageUse

MAX_ROWS = 20


def users_of(image: Image) -> list[str]:
    """One phrase per job that waits or runs with it, or keeps a box over it, and per image saved on top of it."""
    rows = uses_of(image).select_related("job__owner").order_by("pk")[:MAX_ROWS]
    jobs = [
        _("%(kind)s %(name)s (%(number)s) of %(owner)s")
        % {"kind": kinds.label_of(use.job.kind), "name": use.job.name, "number": use.pk, "owner": use.job.owner}
        for use in rows
    ]
    children = image.children.select_related("owner").order_by("pk")[:MAX_ROWS]
    return jobs + [_("image %(name)s of %(owner)s") % {"name": child, "owner": child.owner} for child in children]


def uses_of(image: Image) -> QuerySet[ImageUse]:
    """Jobs that need the image still."""
    return ImageUse.objects.filter(image=image).filter(~Q(job__state__in=FINAL) | Q(boxed=True) & ~Q(node=""))
