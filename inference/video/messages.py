"""Texts of messages about video analyses that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib.wording import Wording, labelled

_DIRECTION_LABELS = {"in": _("in"), "out": _("out")}
VIDEO = {
    "crossed": Wording(
        _("%(class)s %(object)s crossed %(place)s (%(way)s)."),
        way=labelled("way", lambda direction: _DIRECTION_LABELS.get(direction, direction)),
    ),
    "entered": Wording(_("%(class)s %(object)s entered %(place)s.")),
    "left": Wording(_("%(class)s %(object)s left %(place)s after %(seconds)s s.")),
    "loitered": Wording(_("%(class)s %(object)s is in %(place)s for %(seconds)s s.")),
    "frozen": Wording(_("The camera has shown the same image for %(seconds)s s.")),
    "black": Wording(_("The camera has been black for %(seconds)s s.")),
    "over": Wording(_("The camera shows new images again, after %(seconds)s s.")),
    "hangs": Wording(_("A camera of %(name)s shows no new images")),
    "gone": Wording(_("The model or the video of this analysis was deleted.")),
}
