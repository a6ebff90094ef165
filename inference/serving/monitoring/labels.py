"""Labels of the compared values."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

COMPARED: dict[str, Any] = {
    "classes": _("Predicted classes"),
    "scores": _("Confidence"),
    "brightness": _("Brightness"),
    "contrast": _("Contrast"),
    "saturation": _("Saturation"),
    "sharpness": _("Sharpness"),
    "size": _("Number of pixels"),
    "shape": _("Aspect ratio"),
}
WHOLE_IMAGES = _("Whole images")
LOOKS: dict[str, Any] = {
    "brightness": _("Brightness"),
    "red_green": _("Red vs. green"),
    "yellow_blue": _("Yellow vs. blue"),
    "edges": _("Edge direction"),
    "fine_edges": _("Fine edges"),
    "coarse_edges": _("Coarse edges"),
    "sharpness": _("Sharpness"),
    "size": _("Number of pixels"),
    "shape": _("Aspect ratio"),
}
VERDICTS: dict[str, Any] = {
    "steady": _("Unchanged"),
    "moved": _("Shifted"),
    "other": _("Very different"),
    "unknown": _("Not enough images"),
}
