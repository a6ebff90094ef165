"""The texts of messages about sample projects that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, nested

SAMPLE = {
    "internal": Wording(
        _("The sample project could not be created or removed because of a platform error. Try again.")
    ),
    "import_gone": Wording(_("The import of the sample dataset was deleted. Remove the sample project.")),
    "version_gone": Wording(
        _("The version of the sample dataset was deleted. Try again, or remove the sample project.")
    ),
    "import_failed": Wording(_("The import of the sample dataset failed. See its report.")),
    "training_ended": Wording(_("The sample training did not complete. %(why)s"), why=nested),
    "no_model": Wording(_("The sample training left no model.")),
    "endpoint_ended": Wording(_("The sample endpoint stopped before it responded.")),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("sample", SAMPLE)
