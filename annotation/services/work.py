"""Work through the images of a set: submit, neighbours, progress."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Q
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError
from annotation.models import AnnotationSet, ImageTask
from annotation.services import review


class NothingDrawn(DomainError, code="nothing_drawn"):
    """The image has no shapes; it is submitted only with a confirmation that it shows none."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Images of a set by state, and the objects on them."""

    new: int = 0
    in_progress: int = 0
    submitted: int = 0
    rejected: int = 0
    accepted: int = 0

    @property
    def total(self) -> int:
        return self.new + self.in_progress + self.submitted + self.rejected + self.accepted

    @property
    def done(self) -> int:
        """Images that no annotator has to work on."""
        return self.submitted + self.accepted

    @property
    def percent(self) -> int:
        return 100 * self.done // self.total if self.total else 0


@transaction.atomic
def submit(*, task: ImageTask, by: User, empty: bool = False) -> ImageTask:
    """Submit an image. Edits are saved anyway; this only changes its state.

    Args:
        empty: there is nothing on the image to draw.

    Raises:
        NotAllowed: this person may only look at the project.
        ImageAccepted: a reviewer accepted the image already.
        NothingDrawn: no shapes, and `empty` was not given.
    """
    review.require_drawing(by, task)
    task = ImageTask.objects.select_for_update().get(pk=task.pk)
    if task.state == ImageTask.State.ACCEPTED:
        raise review.ImageAccepted(_("This image is already accepted."))
    if not task.shape_count and not empty:
        raise NothingDrawn(_("This image has no annotations. Mark it as empty, or annotate it."))
    task.state = ImageTask.State.SUBMITTED
    task.empty = not task.shape_count
    task.submitted_at = task.updated_at = now()
    task.updated_by = by
    task.save(update_fields=["state", "empty", "submitted_at", "updated_at", "updated_by"])
    return task


def neighbour(task: ImageTask, step: int) -> ImageTask | None:
    """The image before (-1) or after (+1) in its set; None at the ends."""
    return ImageTask.objects.filter(set=task.set_id, number=task.number + step).first()


def progress(sets: list[AnnotationSet]) -> dict[int, Progress]:
    """Progress of each set by its id, in one query."""
    counted = (
        ImageTask.objects.filter(set__in=sets)
        .order_by()
        .values("set")
        .annotate(**{state: Count("pk", filter=Q(state=state)) for state in ImageTask.State.values})
    )
    by_set = {row.pop("set"): Progress(**row) for row in counted}
    return {annotation_set.pk: by_set.get(annotation_set.pk, Progress()) for annotation_set in sets}
