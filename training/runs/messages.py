"""The texts of messages about trainings and their data that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, nested

TRAINING = {
    "version_gone": Wording(_("%(version)s is no longer there.")),
    "owner_not_allowed": Wording(_("Its owner may no longer run trainings.")),
    "dataset_gone": Wording(_("This dataset is no longer there for you.")),
    "version_not_imported": Wording(_("%(version)s is not imported yet.")),
    "version_not_annotated": Wording(
        _("%(version)s is not annotated yet. Annotate its images, or choose an annotated version.")
    ),
    "import_failed": Wording(_("The data could not be imported: %(why)s"), why=nested("why")),
    "import_gone": Wording(_("Its dataset was removed, or the import was cancelled.")),
    "platform_error": Wording(_("It broke off because of an error of the platform. It can be tried again.")),
    "weights_gone": Wording(_("%(weights)s is no longer there to start from.")),
    "no_command": Wording(_("A command is a list of words.")),
}

COMMAND = {
    "needs_exec_server": Wording(
        _(
            "In containers (isolation tier 4) machines cannot start programs on each other. "
            "Choose torchrun or processes as the way to start, or another cluster."
        )
    ),
    "owner_not_allowed": Wording(_("Its owner may no longer run commands.")),
    "secrets_unreadable": Wording(
        _("Its secrets were kept under another secret key of the platform. Clone it and give them again.")
    ),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("training", TRAINING)
    wording.register("command", COMMAND)
