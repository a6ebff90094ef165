"""Review of submitted images: accept them, or send them back with a comment. Also who may draw.

An accepted image is closed to annotators; reviewers may still correct it. One that was sent back stays so, with
the comment in sight, until it is submitted again.
"""

from __future__ import annotations

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from annotation.models import ImageTask, Review

COMMENT_LENGTH = 500
State, Verdict = ImageTask.State, Review.Verdict
#: The states each verdict may follow: a reviewer may also change his mind.
FOLLOWS = {
    Verdict.ACCEPTED: {State.SUBMITTED, State.REJECTED},
    Verdict.REJECTED: {State.SUBMITTED, State.ACCEPTED},
}


class ImageAccepted(DomainError, code="image_accepted"):
    """The image is accepted, so annotators cannot change it."""


class NothingToReview(DomainError, code="nothing_to_review"): ...


class ImageChanged(DomainError, code="image_changed"):
    """The image changed since the reviewer looked at it."""


def draws(user: User, task: ImageTask) -> bool:
    """Whether this person's role allows drawing on the image."""
    return bool(ImageTask.objects.annotatable_by(user).filter(pk=task.pk).exists())


def reviews(user: User, task: ImageTask) -> bool:
    """Whether this person may accept the image or send it back."""
    return bool(ImageTask.objects.reviewable_by(user).filter(pk=task.pk).exists())


def require_drawing(user: User, task: ImageTask) -> None:
    """Refuse who may not draw, before anything of the request is read.

    Raises:
        NotAllowed: with whom to ask.
    """
    if not draws(user, task):
        raise NotAllowed(_("You have read-only access to this project. A project manager can make you an annotator."))


def require_open(user: User, task: ImageTask) -> None:
    """Refuse changes of an accepted image by annotators; the caller holds the row.

    Raises:
        ImageAccepted: a reviewer has to send it back first.
    """
    if task.state == State.ACCEPTED and not reviews(user, task):
        raise ImageAccepted(_("This image is accepted. A reviewer can send it back for changes."))


def require_judging(user: User, task: ImageTask) -> None:
    """Refuse who does not review, before anything of the request is read.

    Raises:
        NotAllowed.
    """
    if not reviews(user, task):
        raise NotAllowed(_("Only reviewers and managers of the project can do this."))


@transaction.atomic
def judge(*, task: ImageTask, by: User, verdict: str, comment: str = "", rev: int | None = None) -> ImageTask:
    """Accept a submitted image, or send it back.

    Args:
        comment: what to change, up to 500 characters; sending back needs one.
        rev: the image's revision that was looked at; None judges whatever is there now.

    Raises:
        NotAllowed: this person does not review the project.
        Invalid: sent back without a comment, or one too long.
        NothingToReview: the image is not submitted, or was judged so already.
        ImageChanged: its shapes changed since revision `rev`.
    """
    require_judging(by, task)
    comment = comment.strip()
    if verdict == Verdict.REJECTED and not comment:
        raise Invalid(_("Describe what to change."), field="comment")
    if len(comment) > COMMENT_LENGTH:
        raise Invalid(_("The comment can have at most 500 characters."), field="comment")
    task = ImageTask.objects.select_for_update().get(pk=task.pk)
    if task.state not in FOLLOWS[Verdict(verdict)]:
        raise NothingToReview(
            _("Only submitted images can be reviewed. This image is not submitted or was already reviewed.")
        )
    if rev is not None and rev != task.rev:
        raise ImageChanged(_("This image was changed by another user in the meantime. Check it again."), rev=task.rev)
    Review.objects.create(task=task, verdict=verdict, comment=comment, rev=task.rev, by=by)
    task.state = State.ACCEPTED if verdict == Verdict.ACCEPTED else State.REJECTED
    task.remark = "" if verdict == Verdict.ACCEPTED else comment
    task.updated_at, task.updated_by = now(), by
    task.save(update_fields=["state", "remark", "updated_at", "updated_by"])
    return task
