"""What happened to an image since its revision was last looked at: for a second window, and a second person."""

from __future__ import annotations

from typing import Any

from annotation.models import ImageTask, Shape, ShapeEvent
from annotation.services import journal


def since(task: ImageTask, rev: int) -> dict[str, Any]:
    """Return the shapes of the image stored after revision `rev`, in their current form, and the image's state.

    An image's revision counts its events, and events of one image are stored one request after the other: so those
    after a revision are those behind as many in the order they came.

    Args:
        rev: revision the asker has; one that is not there yet counts as the newest.

    Returns:
        {"rev", "state", "empty", "remark", "shapes": as `journal.as_dict`, deleted ones too, "by": names of who
        changed them}.
    """
    answer = {"rev": task.rev, "state": task.state, "empty": task.empty, "remark": task.remark}
    if rev >= task.rev:
        return answer | {"shapes": [], "by": []}
    events = ShapeEvent.objects.filter(task=task).order_by("pk")[rev : task.rev].select_related("by")
    people = {event.shape: str(event.by or "") for event in events.defer("data")}
    rows = Shape.objects.filter(task=task, uuid__in=people).order_by("pk")
    return answer | {"shapes": [journal.as_dict(row) for row in rows], "by": sorted({*people.values()} - {""})}
