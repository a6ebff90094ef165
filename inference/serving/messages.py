"""Texts of messages about services and their trials that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Wording, labelled
from inference.serving.monitoring.labels import COMPARED, LOOKS

SERVICE = {
    "drifted": Wording(_("What %(service)s is shown has changed")),
    "drifted_by": Wording(
        _(
            "%(what)s of the last %(images)s pictures differs much from the images that its model learned from (index "
            "%(value)s). Look whether its answers still hold, and annotate some of them."
        ),
        what=labelled("what", lambda code: COMPARED.get(code, code)),
    ),
    "looks_drifted": Wording(
        _(
            "The last %(images)s pictures look different from those that its model learned from: %(apart)s standard "
            "deviations apart, where only 1 of 100 equal samples is more than %(allowed)s apart. Most of it is: "
            "%(what)s. Look whether its answers still hold, and annotate some of the pictures."
        ),
        what=labelled("what", lambda code: LOOKS.get(code, code)),
    ),
    "deleted": Wording(_("This service was deleted.")),
    "parted_crash": Wording(
        _("%(service)s left the process that it shared: %(model)s was at work when that crashed twice in a row.")
    ),
    "parted_load": Wording(_("%(service)s left the process that it shared: %(model)s could not be loaded there.")),
    "model_deleted": Wording(_("The model of this service was deleted.")),
    "model_not_shared": Wording(_("The model of this service is no longer shared with its owner.")),
}
TRIAL = {
    "withdrawn": Wording(_("Its version was deleted, or is no longer shared with the owner of the service.")),
    "service_ended": Wording(_("The service itself ended.")),
    "server_ended": Wording(_("Its server ended. The log of its job says why.")),
    "fails": Wording(_("%(failed)s of its %(requests)s requests failed.")),
    "fails_more": Wording(
        _(
            "%(failed)s of its %(requests)s requests failed, and %(beside_failed)s of the %(beside_requests)s "
            "of the other one."
        )
    ),
}
