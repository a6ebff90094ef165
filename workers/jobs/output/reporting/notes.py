"""What was not kept of the files in which a program reports: sentences by code, for pages and the API."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from aiplatform.lib import wording
from aiplatform.lib.wording import Message, message

LABELS = {
    "file_broken": _("Damaged files: %(count)s. Content before the damage is shown."),
    "record_broken": _("%(count)s damaged records were skipped."),
    "record_too_large": _("%(count)s records larger than 32 MiB were skipped."),
    "file_too_large": _("Files too large to be read here: %(count)s. Download them from the outputs."),
    "line_too_long": _("%(count)s lines longer than 64 KiB were skipped."),
    "row_without_step": _("%(count)s rows without a step were skipped."),
    "not_finite": _("%(count)s values are not finite (NaN or infinite) and were skipped."),
    "kind_unknown": _(
        "%(count)s records are of types that only TensorBoard itself displays, such as audio, meshes or PR curves."
    ),
    "media_refused": _(
        "Images and other media that were not kept, because they are too large, damaged, or exceed the "
        "limit of a run: %(count)s."
    ),
}


def register() -> None:
    """Make the texts known; called once when the app is ready."""
    wording.register("report_file", LABELS)


def list_messages(missed: Mapping[str, int]) -> list[Message]:
    """A message for each code that is known, the most frequent first."""
    rows = sorted(missed.items(), key=lambda row: -row[1])
    return [message(f"report_file.{code}", count=count) for code, count in rows if code in LABELS]
