"""Labels of the compared values."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

COMPARED: dict[str, Any] = {
    "classes": _("Classes answered"),
    "scores": _("Scores of answers"),
    "brightness": _("Brightness"),
    "contrast": _("Contrast"),
    "saturation": _("Saturation"),
    "sharpness": _("Sharpness"),
    "size": _("Number of pixels"),
    "shape": _("Width to height"),
}
LOOKS: dict[str, Any] = {
    "brightness": _("Brightness"),
    "red_green": _("Red against green"),
    "yellow_blue": _("Yellow against blue"),
    "edges": _("Direction of edges"),
    "fine_edges": _("Fine edges"),
    "coarse_edges": _("Coarse edges"),
    "sharpness": _("Sharpness"),
    "size": _("Number of pixels"),
    "shape": _("Width to height"),
}
VERDICTS: dict[str, Any] = {
    "steady": _("As before"),
    "moved": _("Has moved"),
    "other": _("Very different"),
    "unknown": _("Too few pictures"),
}
