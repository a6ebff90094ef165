"""The texts of messages about trainings and their data that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, nested

TRAINING = {
    "version_gone": _("%(version)s does not exist any more."),
    "owner_not_allowed": _("The owner is not allowed to run trainings any more."),
    "dataset_gone": _("You can no longer access this dataset."),
    "version_not_imported": _("%(version)s is not imported yet."),
    "version_not_annotated": _(
        "%(version)s is not annotated yet. Annotate its images, or choose an annotated version."
    ),
    "import_failed": Wording(_("The data could not be imported: %(why)s"), why=nested),
    "import_gone": _("The dataset was removed, or the import was cancelled."),
    "platform_error": _("The import failed because of a platform error. Try again."),
    "weights_gone": _("%(weights)s is not available any more as initial weights."),
    "no_command": _("A command must be a list of words."),
}

COMMAND = {
    "needs_exec_server": _(
        "In containers (isolation tier 4), nodes cannot start programs on each other. Choose torchrun or "
        "processes as the launcher, or another cluster."
    ),
    "owner_not_allowed": _("The owner is not allowed to run custom jobs any more."),
    "secrets_unreadable": _(
        "The secrets were encrypted with a different secret key of the platform. Clone the job and enter them again."
    ),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("training", TRAINING)
    wording.register("command", COMMAND)
