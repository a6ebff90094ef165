"""What an annotator goes on with: datasets with open images, those that were sent back first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Count, IntegerField, Max, Q, Value, When
from django.utils.translation import ngettext

from accounts.models import User
from annotation.models import AnnotationSet, ImageTask
from annotation.services import work

State = ImageTask.State
OPEN = (State.NEW, State.IN_PROGRESS, State.REJECTED)
LOOKED_AT = 50  # of the newest datasets: who is in more of them finds the others in the list of projects
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Todo:
    """A dataset to go on with: the image to open, how many were sent back, and how far it is."""

    set: AnnotationSet
    image: ImageTask
    sent_back: int
    begun: bool  # by this person
    progress: work.Progress


def for_user(user: User, *, limit: int = SHOWN) -> list[Todo]:
    """Return the datasets with open images this user may draw on: sent back first, then recently worked on, then new.

    Who sees everything hears of those only that they own, are in, or have drawn on.
    """
    sets_ = AnnotationSet.objects.annotatable_by(user).filter(filled=True)
    if user.sees_everything:
        drawn = ImageTask.objects.filter(updated_by=user).values("set")
        sets_ = sets_.filter(Q(project__owner=user) | Q(project__members=user) | Q(pk__in=drawn)).distinct()
    near = list(sets_.order_by("-pk").values_list("pk", flat=True)[:LOOKED_AT])
    counted = (
        ImageTask.objects.filter(set__in=near)
        .order_by()
        .values("set")
        .annotate(
            open=Count("pk", filter=Q(state__in=OPEN)),
            back=Count("pk", filter=Q(state=State.REJECTED)),
            last=Max("updated_at", filter=Q(updated_by=user)),
        )
    )
    facts = {row["set"]: (row["back"], row["last"]) for row in counted if row["open"]}
    first = sorted(facts, key=lambda pk: _urgency(pk, *facts[pk]))[:limit]
    sets = AnnotationSet.objects.filter(pk__in=first).for_list().in_bulk()
    progress = work.progress(list(sets.values()))
    return [
        Todo(sets[pk], image, sent_back=facts[pk][0], begun=facts[pk][1] is not None, progress=progress[pk])
        for pk in first
        if (image := next_image(sets[pk], user)) is not None
    ]


def count_sent_back(user: User) -> int:
    """Return the number of images that were sent back, of those this user may draw on in projects of theirs."""
    rows = ImageTask.objects.filter(state=State.REJECTED, set__in=AnnotationSet.objects.annotatable_by(user))
    if user.sees_everything:
        rows = rows.filter(Q(set__project__owner=user) | Q(set__project__members=user))
    return rows.distinct().count()


def sent_back_words(count: int) -> str:
    """Return the count in words."""
    return ngettext("%(count)s image sent back", "%(count)s images sent back", count) % {"count": count}


def next_image(annotation_set: AnnotationSet, user: User) -> ImageTask | None:
    """Return the next open image: one that was sent back, one they started, then the first that is not in progress."""
    rank = Case(
        When(state=State.REJECTED, then=Value(0)),
        When(state=State.IN_PROGRESS, updated_by=user, then=Value(1)),
        When(state=State.NEW, then=Value(2)),
        default=Value(3),
        output_field=IntegerField(),
    )
    rows = ImageTask.objects.filter(set=annotation_set, state__in=OPEN)
    task: ImageTask | None = rows.order_by(rank, "number").first()
    return task


def _urgency(pk: int, sent_back: int, last: datetime | None) -> tuple[bool, bool, float, int]:
    return (not sent_back, last is None, -last.timestamp() if last else 0.0, -pk)
