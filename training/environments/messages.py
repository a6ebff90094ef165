"""The texts of messages about environments that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, hours

ENVIRONMENT = {
    "ready": _("JupyterLab responds."),
    "idle": Wording(
        _("No activity for %(hours)s h. It is stopped soon; its files are kept."), hours=hours("idle_s", 1)
    ),
    "gives_cards": Wording(
        _("No use was detected for %(hours)s h, and other jobs are waiting for its GPUs. It releases them soon."),
        hours=hours("idle_s", 1),
    ),
    "idle_stopped": Wording(
        _("Stopped: no activity for %(hours)s h. Restore it to continue with its files."), hours=hours("idle_s", 1)
    ),
    "owner_not_allowed": _("The owner is not allowed to run workspaces any more."),
    "needs_image": _(
        "Node %(node)s runs jobs in containers (isolation tier 4). Create a new workspace with a container "
        "image that has JupyterLab on its PATH."
    ),
    "extended": Wording(_("%(hours)s h more, until the maximum run time is reached."), hours=hours("span_s")),
    "kept": _("The owner still needs the workspace."),
    "deleted": _("Deletes the workspace with its installed packages. The home folder is kept."),
}
NEWS = {
    "environment_idle": _("“%(name)s” appears to be unused"),
    "environment_gives": _(
        "Other jobs are waiting for its GPUs. In %(minutes)s min it releases them and is paused with its "
        "files and packages. Work in it or mark it as needed on its page."
    ),
    "environment_stops": Wording(
        _("The workspace is stopped after %(hours)s h without use. Mark it as needed on its page, or work in it."),
        hours=hours("limit_s"),
    ),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("environment", ENVIRONMENT)
    wording.register("news", NEWS)
