"""Texts of messages about services and their trials that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Wording, labelled
from inference.serving.monitoring.labels import COMPARED, LOOKS

SERVICE = {
    "drifted": _("Data drift at %(service)s"),
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
    "draft": Wording(_("Draft from wrong predictions of %(name)s")),
    "deleted": _("This endpoint was deleted."),
    "parted_crash": _("%(service)s left the shared process: it crashed twice in a row while %(model)s was running."),
    "parted_load": _("%(service)s left the shared process: %(model)s could not be loaded there."),
    "model_deleted": _("The model of this endpoint was deleted."),
    "model_not_shared": _("The owner of this service can no longer access its model."),
}
TRIAL = {
    "withdrawn": _("The version was deleted, or is not shared with the owner of the endpoint any more."),
    "service_ended": _("The endpoint process exited."),
    "server_ended": _("The server exited. See the log of its job."),
    "fails": _("%(failed)s of its %(requests)s requests failed."),
    "fails_more": _(
        "%(failed)s of its %(requests)s requests failed, compared with %(beside_failed)s of "
        "%(beside_requests)s of the other model."
    ),
}
