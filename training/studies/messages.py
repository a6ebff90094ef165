"""The texts of messages about studies that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, nested, number

STUDY = {
    "training_gone": Wording(_("Its training was deleted.")),
    "no_value": Wording(_("It ended without a number for %(key)s.")),
    "pruned": Wording(_("Ended after point %(point)s: other trials of %(study)s are better.")),
    "refused": Wording(_("The next trial was refused: %(why)s"), why=nested("why")),
    "only_failures": Wording(
        _("The last %(count)s trials failed. Look into one of them before you resume. %(why)s"), why=nested("why")
    ),
    "all_trials": Wording(ngettext_lazy("Its trial is done.", "All %(count)s trials are done.", "count")),
    "time_used": Wording(_("Its time of %(hours)s h is used."), hours=number("hours")),
    "hours_used": Wording(_("Its %(hours)s card-hours or core-hours are used."), hours=number("hours")),
    "target_reached": Wording(_("Trial %(number)s reached %(value)s, which is good enough."), value=number("value")),
    "nothing_completed": Wording(_("No trial completed. %(why)s"), why=nested("why")),
    "paused_by": Wording(_("Paused by %(person)s: no new trial begins.")),
    "stopped_by": Wording(_("Stopped by %(person)s.")),
    "news_done": Wording(_("Study %(name)s is completed")),
    "news_failed": Wording(_("Study %(name)s cannot go on")),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("study", STUDY)
