"""The texts of messages about studies that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording, nested, number

STUDY = {
    "training_gone": _("The training of this trial was deleted."),
    "no_value": _("The trial ended without a value for %(key)s."),
    "pruned": _("Pruned after point %(point)s: other trials of %(study)s are better."),
    "refused": Wording(_("The next trial was rejected: %(why)s"), why=nested),
    "only_failures": Wording(
        _("The last %(count)s trials failed. Check one of them before you resume. %(why)s"), why=nested
    ),
    "all_trials": ngettext_lazy("The trial is done.", "All %(count)s trials are done.", "count"),
    "time_used": Wording(_("The time limit of %(hours)s h is reached."), hours=number),
    "hours_used": Wording(_("The limit of %(hours)s GPU-hours or core-hours is reached."), hours=number),
    "target_reached": Wording(_("Trial %(number)s reached the target with %(value)s."), value=number),
    "nothing_completed": Wording(_("No trial completed. %(why)s"), why=nested),
    "paused_by": _("Paused by %(person)s: no new trial starts."),
    "stopped_by": _("Stopped by %(person)s."),
    "news_done": _("Study %(name)s is completed"),
    "news_failed": _("Study %(name)s cannot continue"),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("study", STUDY)
