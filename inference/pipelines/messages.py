"""The texts of messages about pipelines that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib import wording
from aiplatform.lib.wording import Wording

PIPELINE = {
    "broke": _("The platform could not run this step: %(why)s. Inform an operator, and retry it."),
    "skipped_by_person": _("Skipped by a user."),
    "other_answer": _("%(step)s returned “%(answer)s”."),
    "left_out_with": _("Requires %(steps)s."),
    "refused_at": _("Ended early: rejected by %(steps)s."),
    "items_failed": ngettext_lazy("%(count)s of %(of)s failed.", "%(count)s of %(of)s failed.", "count"),
    "failed": _("These steps failed: %(steps)s."),
    "kind_gone": _("The step kind “%(kind)s” is not installed any more."),
    "owner_not_allowed": _("The owner of this run does not have this permission any more."),
    "question_gone": _("The approval request was deleted."),
    "refused_by": _("Rejected by %(person)s. %(comment)s"),
    "passed_by": _("Approved by %(people)s."),
    "nobody_answered": _("No answer before the deadline."),
    "own_work": _("This pipeline created it: a pipeline is not started by its own results."),
    "chain_too_long": _("More than %(most)s pipelines triggered each other in a row, so this one was not started."),
    "still_busy": _("An earlier run of this pipeline was active."),
    "no_champion_yet": _("%(name)s does not exist yet, so the candidate passes as the first one."),
    "asked": _("%(name)s #%(number)s requests approval: %(question)s"),
    "no_figure": _("Unknown metric %(name)s. See the metrics of the previous step."),
    "no_figure_near": _("Unknown metric %(name)s. Similar metrics: %(near)s."),
    "gate": _("%(rule)s, with %(values)s"),
    "news_ok": _("Pipeline %(name)s #%(number)s is completed"),
    "news_failed": _("Pipeline %(name)s #%(number)s failed"),
    "news_step": _("Pipeline %(name)s #%(number)s reports: %(text)s"),
    # put to work
    "model_not_yours": _("You cannot edit %(model)s. Ask its owner to share it with manage access."),
    "converted": _("%(text)s is the fastest accepted variant."),
    "convert_none": _(
        "No variant was accepted (%(text)s). Allow a larger loss, or choose other variants or more images."
    ),
    "convert_none_faster": _(
        "The accepted variants (%(text)s) are not faster than the original model. Keep all, to continue "
        "with one of them."
    ),
    "convert_not_kept": _(
        "The accepted variant (%(text)s) was not promoted, or was deleted. See the log of the conversion."
    ),
    "convert_no_data": _(
        "The training data of %(model)s is unknown, or you cannot access it. Connect evaluation data."
    ),
    "served": _("%(name)s serves %(version)s."),
    "service_gone": _("The endpoint was deleted or is not accessible to you any more."),
    "service_changed": _("The model of %(name)s was changed by another user in the meantime."),
    "server_ended": _("The replica of %(name)s exited before it was ready. See its log."),
    "server_ended_beside": _(
        "The new server of %(name)s exited before it was ready, so the endpoint keeps its previous model."
    ),
    "trial_rolled_back": _("A user rolled back the trial of %(name)s."),
    "trial_halted": Wording(_("The rollout of %(name)s was halted: %(why)s"), why=wording.nested),
    "trial_fails": _("Rolled back: %(failed)s of %(requests)s requests failed, more than %(bound)s %%."),
    "trial_differs": _("Rolled back: %(percent)s %% of the predictions agreed, less than %(bound)s %%."),
    "trial_few": _("Rolled back: only %(requests)s of %(most)s requests arrived within a week."),
    "group_gone": _("The device group was deleted or is not accessible to you any more."),
    "release_changed": _("Another model was released to %(name)s in the meantime."),
    "release_halted": ngettext_lazy(
        "The release to %(name)s was halted: %(failed)s device failed.",
        "The release to %(name)s was halted: %(failed)s devices failed.",
        "failed",
    ),
    "push_stopped": _("The export was stopped or deleted."),
    "data_not_yours": _(
        "You cannot edit %(name)s, so the predictions cannot become its next version. Clear that field."
    ),
    "predicted_nothing": _("The batch prediction has no results. See its log."),
    "version_failed": _("No dataset version was created from the predictions. %(text)s"),
    # what begins by itself
    "not_agreed": _(
        "%(person)s has not confirmed a version yet, and its runs use the permissions of this user. A "
        "version must be confirmed before it starts."
    ),
    "version_waits": _(
        "%(person)s saved version %(version)s of pipeline %(name)s. Your triggers run with your "
        "permissions, so they keep the version you confirmed until you confirm the new one"
    ),
    "trigger_refused": _("Pipeline %(name)s did not start automatically"),
    "too_many_items": _("With %(count)s items the run would have more than %(most)s rows. Use fewer items or steps."),
    "figures_unknown": _("These metrics were not measured, so their names stay in the text: %(names)s."),
    "hook": _("Pipeline %(name)s #%(number)s: %(text)s"),
    "hook_failed": Wording(_("The address did not accept the message: %(why)s"), why=wording.nested),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("pipeline", PIPELINE)
