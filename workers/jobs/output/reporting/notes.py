"""What was not kept of the files in which a program reports: sentences by code, for pages and the API."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Message, Wording, message

LABELS = {
    "file_broken": Wording(_("Damaged files: %(count)s. What stands before the damage is shown.")),
    "record_broken": Wording(_("%(count)s records are damaged and left out.")),
    "record_too_large": Wording(_("%(count)s records are larger than 32 MiB and left out.")),
    "file_too_large": Wording(_("Files too large to be read here: %(count)s. Download them from the outputs.")),
    "line_too_long": Wording(_("%(count)s lines are longer than 64 KiB and left out.")),
    "row_without_step": Wording(_("%(count)s rows say no step and are left out.")),
    "not_finite": Wording(_("%(count)s values are no finite numbers (NaN or infinite) and left out.")),
    "kind_unknown": Wording(
        _("%(count)s records are of kinds that only TensorBoard itself shows, such as sound, meshes or PR curves.")
    ),
    "media_refused": Wording(
        _("Images and other media not kept, as too large, damaged, or more than a run may have: %(count)s.")
    ),
}


def register() -> None:
    """Make the texts known; called once when the app is ready."""
    wording.register("report_file", LABELS)


def list_messages(missed: Mapping[str, int]) -> list[Message]:
    """A message for each code that is known, the most frequent first."""
    rows = sorted(missed.items(), key=lambda row: -row[1])
    return [message(f"report_file.{code}", count=count) for code, count in rows if code in LABELS]
