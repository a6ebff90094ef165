"""The texts of messages about pipelines that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

PIPELINE = {
    "broke": Wording(_("The platform could not do this step: %(why)s. Tell an operator, and retry it.")),
    "skipped_by_person": Wording(_("A person left it out.")),
    "items_failed": Wording(ngettext_lazy("%(count)s of %(of)s failed.", "%(count)s of %(of)s failed.", "count")),
    "failed": Wording(_("These steps failed: %(steps)s.")),
    "kind_gone": Wording(_("The step kind “%(kind)s” is not installed any more.")),
    "owner_not_allowed": Wording(_("The owner of this run may not do this any more.")),
    "question_gone": Wording(_("Its question was deleted.")),
    "refused_by": Wording(_("Refused by %(person)s. %(comment)s")),
    "passed_by": Wording(_("Agreed by %(people)s.")),
    "nobody_answered": Wording(_("Nobody answered in time.")),
    "own_work": Wording(_("This pipeline made it itself: it does not begin anew by its own work.")),
    "chain_too_long": Wording(_("More than %(most)s pipelines began each other in a row, so this one did not.")),
    "still_busy": Wording(_("An earlier run of this trigger went on.")),
    "asked": Wording(_("%(name)s #%(number)s asks: %(question)s")),
    "gate": Wording(_("%(rule)s: %(values)s")),
    "news_ok": Wording(_("Pipeline %(name)s #%(number)s is completed")),
    "news_failed": Wording(_("Pipeline %(name)s #%(number)s failed")),
    "news_step": Wording(_("%(name)s #%(number)s: %(text)s")),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("pipeline", PIPELINE)
