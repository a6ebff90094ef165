"""The texts of messages about pipelines that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

PIPELINE = {
    "broke": Wording(_("The platform could not run this step: %(why)s. Inform an operator, and retry it.")),
    "skipped_by_person": Wording(_("Skipped by a user.")),
    "other_answer": Wording(_("%(step)s returned “%(answer)s”.")),
    "left_out_with": Wording(_("Requires %(steps)s.")),
    "refused_at": Wording(_("Ended early: rejected by %(steps)s.")),
    "items_failed": Wording(ngettext_lazy("%(count)s of %(of)s failed.", "%(count)s of %(of)s failed.", "count")),
    "failed": Wording(_("These steps failed: %(steps)s.")),
    "kind_gone": Wording(_("The step kind “%(kind)s” is not installed any more.")),
    "owner_not_allowed": Wording(_("The owner of this run does not have this permission any more.")),
    "question_gone": Wording(_("The approval request was deleted.")),
    "refused_by": Wording(_("Rejected by %(person)s. %(comment)s")),
    "passed_by": Wording(_("Approved by %(people)s.")),
    "nobody_answered": Wording(_("No answer before the deadline.")),
    "own_work": Wording(_("This pipeline created it: a pipeline is not started by its own results.")),
    "chain_too_long": Wording(
        _("More than %(most)s pipelines triggered each other in a row, so this one was not started.")
    ),
    "still_busy": Wording(_("An earlier run of this pipeline was active.")),
    "no_champion_yet": Wording(_("%(name)s does not exist yet, so the candidate passes as the first one.")),
    "asked": Wording(_("%(name)s #%(number)s requests approval: %(question)s")),
    "no_figure": Wording(_("Unknown metric %(name)s. See the metrics of the previous step.")),
    "no_figure_near": Wording(_("Unknown metric %(name)s. Similar metrics: %(near)s.")),
    "gate": Wording(_("%(rule)s, with %(values)s")),
    "news_ok": Wording(_("Pipeline %(name)s #%(number)s is completed")),
    "news_failed": Wording(_("Pipeline %(name)s #%(number)s failed")),
    "news_step": Wording(_("Pipeline %(name)s #%(number)s reports: %(text)s")),
    # put to work
    "model_not_yours": Wording(_("You cannot edit %(model)s. Ask its owner to share it with manage access.")),
    "converted": Wording(_("%(text)s is the fastest accepted variant.")),
    "convert_none": Wording(
        _("No variant was accepted (%(text)s). Allow a larger loss, or choose other variants or more images.")
    ),
    "convert_none_faster": Wording(
        _(
            "The accepted variants (%(text)s) are not faster than the original model. Keep all, to continue "
            "with one of them."
        )
    ),
    "convert_not_kept": Wording(
        _("The accepted variant (%(text)s) was not promoted, or was deleted. See the log of the conversion.")
    ),
    "convert_no_data": Wording(
        _("The training data of %(model)s is unknown, or you cannot access it. Connect evaluation data.")
    ),
    "served": Wording(_("%(name)s serves %(version)s.")),
    "service_gone": Wording(_("The endpoint was deleted or is not accessible to you any more.")),
    "service_changed": Wording(_("The model of %(name)s was changed by another user in the meantime.")),
    "server_ended": Wording(_("The replica of %(name)s exited before it was ready. See its log.")),
    "server_ended_beside": Wording(
        _("The new server of %(name)s exited before it was ready, so the endpoint keeps its previous model.")
    ),
    "trial_rolled_back": Wording(_("A user rolled back the trial of %(name)s.")),
    "trial_halted": Wording(_("The rollout of %(name)s was halted: %(why)s"), why=wording.nested("why")),
    "trial_fails": Wording(_("Rolled back: %(failed)s of %(requests)s requests failed, more than %(bound)s %%.")),
    "trial_differs": Wording(_("Rolled back: %(percent)s %% of the predictions agreed, less than %(bound)s %%.")),
    "trial_few": Wording(_("Rolled back: only %(requests)s of %(most)s requests arrived within a week.")),
    "group_gone": Wording(_("The device group was deleted or is not accessible to you any more.")),
    "release_changed": Wording(_("Another model was released to %(name)s in the meantime.")),
    "release_halted": Wording(
        ngettext_lazy(
            "The release to %(name)s was halted: %(failed)s device failed.",
            "The release to %(name)s was halted: %(failed)s devices failed.",
            "failed",
        )
    ),
    "push_stopped": Wording(_("The export was stopped or deleted.")),
    "data_not_yours": Wording(
        _("You cannot edit %(name)s, so the predictions cannot become its next version. Clear that field.")
    ),
    "predicted_nothing": Wording(_("The batch prediction has no results. See its log.")),
    "version_failed": Wording(_("No dataset version was created from the predictions. %(text)s")),
    # what begins by itself
    "not_agreed": Wording(
        _(
            "%(person)s has not confirmed a version yet, and its runs use the permissions of this user. A "
            "version must be confirmed before it starts."
        )
    ),
    "version_waits": Wording(
        _(
            "%(person)s saved version %(version)s of pipeline %(name)s. Your triggers run with your "
            "permissions, so they keep the version you confirmed until you confirm the new one"
        )
    ),
    "trigger_refused": Wording(_("Pipeline %(name)s did not start automatically")),
    "too_many_items": Wording(
        _("With %(count)s items the run would have more than %(most)s rows. Use fewer items or steps.")
    ),
    "figures_unknown": Wording(_("These metrics were not measured, so their names stay in the text: %(names)s.")),
    "hook": Wording(_("Pipeline %(name)s #%(number)s: %(text)s")),
    "hook_failed": Wording(_("The address did not accept the message: %(why)s"), why=wording.nested("why")),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("pipeline", PIPELINE)
