"""The texts of messages about services and evaluations that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, labelled

SERVICE = {
    "deleted": Wording(_("This service was deleted.")),
    "model_deleted": Wording(_("The model of this service was deleted.")),
    "model_not_shared": Wording(_("The model of this service is no longer shared with its owner.")),
}
EVALUATION = {"gone": Wording(_("The model or the dataset of this evaluation was deleted."))}

_REFUSALS = {
    "needs_another_person": _("another person must approve it"),
    "version_archived": _("the version is archived"),
    "wrong_stage": _("there is no way from its stage to approved"),
}
PROMOTION = {
    "given": Wording(_("Promoted: %(metric)s is %(value)s, asked was %(bound)s.")),
    "missed": Wording(_("Not promoted: %(metric)s is %(value)s, at least %(bound)s is asked.")),
    "exceeded": Wording(_("Not promoted: %(metric)s is %(value)s, at most %(bound)s is asked.")),
    "not_better": Wording(_("Not promoted: %(metric)s is %(value)s, and %(than)s, which is %(alias)s, has %(other)s.")),
    "not_measured": Wording(
        _("Not promoted: %(than)s, which is %(alias)s, was not evaluated on the same data. Evaluate it first.")
    ),
    "is_it": Wording(_("Not promoted: %(than)s is %(alias)s already.")),
    "no_figure": Wording(_("Not promoted: the evaluation has no figure %(metric)s.")),
    "incomplete": Wording(_("Not promoted: not all images were judged.")),
    "author": Wording(_("Not promoted: who made the rule may no longer edit the model. Make it anew.")),
    "owner": Wording(_("Not promoted: who ran the evaluation may not edit the model.")),
    "refused": Wording(_("Not promoted: %(why)s."), why=labelled("code", lambda code: _REFUSALS.get(code, code))),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("service", SERVICE)
    wording.register("evaluation", EVALUATION)
    wording.register("promotion", PROMOTION)
