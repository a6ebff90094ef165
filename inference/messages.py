"""The texts of messages about services and evaluations that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

SERVICE = {
    "deleted": Wording(_("This service was deleted.")),
    "model_deleted": Wording(_("The model of this service was deleted.")),
    "model_not_shared": Wording(_("The model of this service is no longer shared with its owner.")),
}
EVALUATION = {"gone": Wording(_("The model or the dataset of this evaluation was deleted."))}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("service", SERVICE)
    wording.register("evaluation", EVALUATION)
