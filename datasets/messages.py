"""The texts of messages about datasets that rows keep as code and facts."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Show, Wording
from datasets.services.report_sentences import REPORT

GROUPED = {"": "", "folder": _("by folder"), "prefix": _("by prefix")}

VERSION = {
    "split": Wording(
        _("%(of)s split %(train)s/%(val)s/%(test)s, seed %(seed)s %(group)s"),
        group=Show("group", lambda value: GROUPED[value]),
    ),
    "chosen": _("Images of %(of)s with %(query)s"),
    "merged": _("%(names)s merged"),
}

#: Why a drawn shape, or one of a file, is refused.
SHAPE = {
    "no_points": _("The shape has no points."),
    "most_parts": _("A shape can have at most 1,000 parts."),
    "most_points": _("A shape can have at most 10,000 points."),
    "pairs": _("Points must be pairs of x and y."),
    "numbers": _("Coordinates must be numbers."),
    "finite_numbers": _("Coordinates must be finite numbers."),
    "outside": _("All points must be inside the image of %(width)s × %(height)s pixels."),
    "crossing": _("The lines of the polygon intersect."),
    "no_area": _("The shape has no area."),
    "three_points": _("A polygon needs at least 3 points."),
    "four_corners": _("A box must have four corners, clockwise from the top left."),
}


def register() -> None:
    """Make all texts known; called once when the app is ready."""
    wording.register("version", VERSION)
    wording.register("shape", SHAPE)
    wording.register("report", REPORT)
