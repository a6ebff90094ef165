"""Texts of messages about services and their trials that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Wording, labelled
from inference.serving.monitoring.labels import COMPARED, LOOKS

SERVICE = {
    "drifted": Wording(_("Data drift at %(service)s")),
    "drifted_by": Wording(
        _(
            "%(what)s of the last %(images)s images differs strongly from the training images (index "
            "%(value)s). Check whether the predictions are still correct, and annotate some images."
        ),
        what=labelled("what", lambda code: COMPARED.get(code, code)),
    ),
    "looks_drifted": Wording(
        _(
            "The last %(images)s images differ from the training images by %(apart)s standard deviations; only "
            "1 of 100 equal samples differs by more than %(allowed)s. Main difference: %(what)s. Check whether "
            "the predictions are still correct, and annotate some of the images."
        ),
        what=labelled("what", lambda code: LOOKS.get(code, code)),
    ),
    "deleted": Wording(_("This endpoint was deleted.")),
    "parted_crash": Wording(
        _("%(service)s left the shared process: it crashed twice in a row while %(model)s was running.")
    ),
    "parted_load": Wording(_("%(service)s left the shared process: %(model)s could not be loaded there.")),
    "model_deleted": Wording(_("The model of this endpoint was deleted.")),
    "model_not_shared": Wording(_("The owner of this service can no longer access its model.")),
}
TRIAL = {
    "withdrawn": Wording(_("The version was deleted, or is not shared with the owner of the endpoint any more.")),
    "service_ended": Wording(_("The endpoint process exited.")),
    "server_ended": Wording(_("The server exited. See the log of its job.")),
    "fails": Wording(_("%(failed)s of its %(requests)s requests failed.")),
    "fails_more": Wording(
        _(
            "%(failed)s of its %(requests)s requests failed, compared with %(beside_failed)s of "
            "%(beside_requests)s of the other model."
        )
    ),
}
