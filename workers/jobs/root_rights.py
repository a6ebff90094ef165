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
        raise Invalid(_("Jobs of this kind cannot run as root in the sandbox. Disable it."), field="root_inside")
    if not owner.root_allowed:
        raise NotAllowed(
            _("Root in the sandbox requires a permission. Ask an administrator, or disable it."),
            field="root_inside",
        )
    if not owner.root_inside:
        raise NotAllowed(
            _("Enable root in the sandbox in your settings first, or disable it here."), field="root_inside"
        )


def check_restore(job: Job) -> None:
    """Refuse to start a job again whose owner may no longer be root inside.

    Raises:
        NotAllowed: with what to do.
    """
    if job.root_inside and not job.owner.uses_root:
        raise NotAllowed(
            _(
                "This job runs as root in the sandbox, which its owner is not allowed to any more. Clone it "
                "without root in the sandbox."
            ),
            field="root_inside",
        )


def machines() -> tuple[list[str], int]:
    """Names of the machines that offer it, and how many there are in all."""
    rows = list(Node.objects.exclude(state__in=(Node.State.LOST, Node.State.REMOVED)).order_by("name"))
    return [node.name for node in rows if node.root_inside], len(rows)
