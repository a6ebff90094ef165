"""Who may be root inside of a job: people whom an administrator allowed it, once they switched it on."""

from __future__ import annotations

from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib.errors import Invalid, NotAllowed
from workers.core.kinds import JobKind
from workers.core.models import Job, Node


def check(owner: User, kind: JobKind, requested: bool) -> None:
    """Refuse root inside to who may not have it.

    Raises:
        Invalid: jobs of this kind are none.
        NotAllowed: the person may not, or has not switched it on.
    """
    if not requested:
        return
    if not kind.root_inside:
        raise Invalid(_("Jobs of this kind are never root inside. Leave it out."), field="root_inside")
    if not owner.root_allowed:
        raise NotAllowed(
            _("Root inside is for people whom an administrator allowed it. Ask one, or leave it out."),
            field="root_inside",
        )
    if not owner.root_inside:
        raise NotAllowed(_("Switch root inside on in your settings first, or leave it out."), field="root_inside")


def check_restore(job: Job) -> None:
    """Refuse to start a job again whose owner may no longer be root inside.

    Raises:
        NotAllowed: with what to do.
    """
    if job.root_inside and not job.owner.uses_root:
        raise NotAllowed(
            _("This job is root inside, which its owner may not any more. Clone it and leave root inside out."),
            field="root_inside",
        )


def machines() -> tuple[list[str], int]:
    """Names of the machines that offer it, and how many there are in all."""
    rows = list(Node.objects.exclude(state__in=(Node.State.LOST, Node.State.REMOVED)).order_by("name"))
    return [node.name for node in rows if node.root_inside], len(rows)
