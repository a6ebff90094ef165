"""The texts of messages about environments that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, hours

ENVIRONMENT = {
    "ready": Wording(_("JupyterLab answers.")),
    "idle": Wording(
        _("Nothing showed for %(hours)s h that it is used. It is stopped soon; its files stay."),
        hours=hours("idle_s", 1),
    ),
    "gives_cards": Wording(
        _("Nothing showed for %(hours)s h that it is used, and others wait for its cards. It gives them back soon."),
        hours=hours("idle_s", 1),
    ),
    "idle_stopped": Wording(
        _("Stopped: nothing showed for %(hours)s h that it was used. Restore it to go on with its files."),
        hours=hours("idle_s", 1),
    ),
    "owner_not_allowed": Wording(_("Its owner may no longer run environments.")),
    "needs_image": Wording(
        _(
            "The machine %(node)s runs jobs in containers (isolation tier 4). Start a new environment in a container "
            "image with JupyterLab on its PATH."
        )
    ),
    "extended": Wording(_("%(hours)s h more, until its longest run time is over."), hours=hours("span_s")),
    "kept": Wording(_("It is still needed, says its owner.")),
    "deleted": Wording(_("Deleted, with the packages that were installed in it. The home folder stays.")),
}
NEWS = {
    "environment_idle": Wording(_("“%(name)s” seems to be unused")),
    "environment_gives": Wording(
        _(
            "Others wait for its cards. In %(minutes)s min it gives them back and waits, paused, with its files "
            "and packages. Work in it, or say on its page that you still need it."
        ),
    ),
    "environment_stops": Wording(
        _("It is stopped after %(hours)s h without use. Say on its page that you still need it, or work in it."),
        hours=hours("limit_s"),
    ),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("environment", ENVIRONMENT)
    wording.register("news", NEWS)
