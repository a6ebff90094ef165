"""The texts of messages about pipelines that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

PIPELINE = {
    "broke": Wording(_("The platform could not do this step: %(why)s. Tell an operator, and retry it.")),
    "skipped_by_person": Wording(_("A person left it out.")),
    "other_answer": Wording(_("%(step)s answered “%(answer)s”.")),
    "left_out_with": Wording(_("It needs %(steps)s.")),
    "refused_at": Wording(_("Ended early: %(steps)s refused.")),
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
    "still_busy": Wording(_("An earlier run of this pipeline went on.")),
    "no_champion_yet": Wording(_("There is no %(name)s yet, so the candidate passes as the first one.")),
    "asked": Wording(_("%(name)s #%(number)s asks: %(question)s")),
    "no_figure": Wording(_("There is no figure %(name)s. Look which figures the step before gives.")),
    "no_figure_near": Wording(_("There is no figure %(name)s. Near it: %(near)s.")),
    "gate": Wording(_("%(rule)s, with %(values)s")),
    "news_ok": Wording(_("Pipeline %(name)s #%(number)s is completed")),
    "news_failed": Wording(_("Pipeline %(name)s #%(number)s failed")),
    "news_step": Wording(_("Pipeline %(name)s #%(number)s says: %(text)s")),
    # put to work
    "model_not_yours": Wording(_("%(model)s is not yours to change. Ask its owner to share it for managing.")),
    "converted": Wording(_("%(text)s is the fastest that was accepted.")),
    "convert_none": Wording(
        _("No variant was accepted (%(text)s). Allow a larger loss, or choose other variants or more pictures.")
    ),
    "convert_none_faster": Wording(
        _("What was accepted (%(text)s) is not faster than the model as it is. Keep all, to go on with one of them.")
    ),
    "convert_not_kept": Wording(
        _("What was accepted (%(text)s) did not become a version, or was deleted. Look into the log of the conversion.")
    ),
    "convert_no_data": Wording(
        _("Nobody knows on which data %(model)s was trained, or it is not for you. Connect data to judge on.")
    ),
    "served": Wording(_("%(name)s answers with %(version)s.")),
    "service_gone": Wording(_("The service is gone, or not for you any more.")),
    "service_changed": Wording(_("Somebody gave %(name)s another model meanwhile.")),
    "server_ended": Wording(_("The server of %(name)s ended before it answered. Look into its log.")),
    "server_ended_beside": Wording(
        _("The new server of %(name)s ended before it answered, so the service goes on with the model that it had.")
    ),
    "trial_rolled_back": Wording(_("Somebody rolled back what %(name)s tried.")),
    "trial_halted": Wording(_("What %(name)s tried was halted: %(why)s"), why=wording.nested("why")),
    "trial_fails": Wording(
        _("It was rolled back: %(failed)s of %(requests)s requests failed, more than %(bound)s %%.")
    ),
    "trial_differs": Wording(_("It was rolled back: its answers agreed by %(percent)s %%, less than %(bound)s %%.")),
    "trial_few": Wording(_("It was rolled back: only %(requests)s of %(most)s requests came within a week.")),
    "group_gone": Wording(_("The group of devices is gone, or not for you any more.")),
    "release_changed": Wording(_("Somebody released another model to %(name)s meanwhile.")),
    "release_halted": Wording(
        ngettext_lazy(
            "The release to %(name)s was halted: %(failed)s device failed with it.",
            "The release to %(name)s was halted: %(failed)s devices failed with it.",
            "failed",
        )
    ),
    "push_stopped": Wording(_("The push was stopped, or its row is gone.")),
    "data_not_yours": Wording(
        _("%(name)s is not yours to change, so the answers cannot become its next version. Leave that out.")
    ),
    "predicted_nothing": Wording(_("The prediction left no answers. Look into its log.")),
    "version_failed": Wording(_("No dataset version came of the answers. %(text)s")),
    # what begins by itself
    "not_agreed": Wording(
        _("%(person)s has agreed to no version yet, and its runs run as this person: say which one, then it begins.")
    ),
    "version_waits": Wording(
        _(
            "%(person)s saved version %(version)s of pipeline %(name)s. What you set up there runs as you, so it goes "
            "on with the version that you know until you take this one over"
        )
    ),
    "trigger_refused": Wording(_("Pipeline %(name)s did not begin by itself")),
    "too_many_items": Wording(
        _("With these %(count)s items the run would have more than %(most)s rows. Give it fewer items or steps.")
    ),
    "figures_unknown": Wording(_("Nobody measured these figures, so their names stayed in the text: %(names)s.")),
    "hook": Wording(_("Pipeline %(name)s #%(number)s: %(text)s")),
    "hook_failed": Wording(_("The address did not take the message: %(why)s"), why=wording.nested("why")),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("pipeline", PIPELINE)
