"""Texts of messages about evaluations that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib.wording import Wording, labelled

EVALUATION = {
    "gone": Wording(_("The model or the dataset of this evaluation was deleted.")),
    "draft": Wording(_("Draft from images with errors in evaluation %(name)s")),
}
OWN_SCRIPT = {
    "no_figures": Wording(
        _("The script did not write %(name)s. It must write names and numbers into the folder in AIP_OUTPUT_DIR.")
    ),
    "too_large": Wording(_("%(name)s is larger than %(most)s KiB. Write only metrics.")),
    "no_json": Wording(_("%(name)s is not valid JSON: %(error)s Write it with json.dump.")),
    "no_table": Wording(_("%(name)s must be one JSON object with names and numbers.")),
    "empty": Wording(_("%(name)s contains no metric. Write at least one name with a number.")),
    "too_many": Wording(_("%(count)s metrics exceed the limit of %(most)s. Remove some.")),
    "odd_name": Wording(_("“%(name)s” is not a valid metric name: use 1 to %(most)s printable characters.")),
    "no_number": Wording(_("%(name)s is %(value)s, which is not a finite number. Remove it, or write a number.")),
    "too_deep": Wording(_("%(name)s contains more than a number. Metrics can be nested one level at most.")),
    "twice": Wording(_("Duplicate metric %(name)s. Use unique names.")),
    "more": Wording(ngettext_lazy("And %(count)s more problem.", "And %(count)s more problems.", "count")),
    "failed": Wording(_("%(file)s exited with code %(code)s. See its output, correct it and run again.")),
}
_REFUSALS = {
    "needs_another_person": _("approval by another user is required"),
    "version_archived": _("the version is archived"),
    "wrong_stage": _("the current stage cannot change to approved"),
}
PROMOTION = {
    "given": Wording(_("Promoted: %(metric)s is %(value)s; required: %(bound)s.")),
    "missed": Wording(_("Not promoted: %(metric)s is %(value)s; at least %(bound)s is required.")),
    "exceeded": Wording(_("Not promoted: %(metric)s is %(value)s; at most %(bound)s is required.")),
    "not_better": Wording(_("Not promoted: %(metric)s is %(value)s, and %(than)s, which is %(alias)s, has %(other)s.")),
    "not_measured": Wording(
        _("Not promoted: %(than)s, which is %(alias)s, was not evaluated on the same data. Evaluate it first.")
    ),
    "is_it": Wording(_("Not promoted: %(than)s is already %(alias)s.")),
    "no_figure": Wording(_("Not promoted: the evaluation has no metric %(metric)s.")),
    "incomplete": Wording(_("Not promoted: some images were not evaluated.")),
    "own_script": Wording(
        _(
            "Not promoted: a rule uses the result of a custom script only if the author of the rule started "
            "the evaluation."
        )
    ),
    "author": Wording(_("Not promoted: the author of the rule can no longer edit the model. Create the rule again.")),
    "owner": Wording(_("Not promoted: the owner of the evaluation cannot edit the model.")),
    "refused": Wording(_("Not promoted: %(why)s."), why=labelled("code", lambda code: _REFUSALS.get(code, code))),
}
