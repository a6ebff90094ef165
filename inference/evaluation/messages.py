"""Texts of messages about evaluations that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from aiplatform.lib.wording import Wording, labelled

EVALUATION = {"gone": Wording(_("The model or the dataset of this evaluation was deleted."))}
OWN_SCRIPT = {
    "no_figures": Wording(
        _("The script wrote no %(name)s. Let it write one, names and their numbers, into the folder in AIP_OUTPUT_DIR.")
    ),
    "too_large": Wording(_("%(name)s is larger than %(most)s KiB. Write figures alone.")),
    "no_json": Wording(_("%(name)s is no JSON: %(error)s Write it with json.dump.")),
    "no_table": Wording(_("%(name)s must be one object of JSON with names and their numbers.")),
    "empty": Wording(_("%(name)s holds no figure. Write at least one name with a number.")),
    "too_many": Wording(_("There are %(count)s figures, more than %(most)s. Leave some out.")),
    "odd_name": Wording(_("“%(name)s” is no name of a figure: use 1 to %(most)s printable characters.")),
    "no_number": Wording(_("%(name)s is %(value)s, which is no finite number. Leave it out, or write a number.")),
    "too_deep": Wording(_("%(name)s holds more than a number. Figures are nested one level at most.")),
    "twice": Wording(_("%(name)s is written twice. Give each figure its own name.")),
    "more": Wording(ngettext_lazy("And %(count)s more problem.", "And %(count)s more problems.", "count")),
    "failed": Wording(_("%(file)s ended with exit code %(code)s. Its console says why; mend it and run again.")),
}
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
    "own_script": Wording(
        _("Not promoted: a rule approves by an own script only where whoever made the rule began the evaluation.")
    ),
    "author": Wording(_("Not promoted: who made the rule may no longer edit the model. Make it anew.")),
    "owner": Wording(_("Not promoted: who ran the evaluation may not edit the model.")),
    "refused": Wording(_("Not promoted: %(why)s."), why=labelled("code", lambda code: _REFUSALS.get(code, code))),
}
