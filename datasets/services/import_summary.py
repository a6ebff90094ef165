"""Summarize the report of an import: what is used, skipped and not recognized. One summary for page, API and CLI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from aiplatform.lib.units import Count


def summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Counts of a stored report; those of a report of an earlier version without skipped objects are 0."""
    skipped = report.get("skipped_objects", 0)
    unused = report.get("unused_label_files", 0)
    return {
        "images": {"used": report.get("images", 0), "skipped": report.get("skipped_images", 0)},
        "objects": {
            "used": report.get("annotations", 0),
            "skipped": skipped,
            "total": report.get("annotations", 0) + skipped,
        },
        "unused_label_files": unused,
        "problems": report.get("problem_total", 0),
        "unlabelled": bool(report.get("unlabelled")),
        "undecided": list(report.get("undecided", ())),
    }


def lines(report: Mapping[str, Any]) -> list[str]:
    """The summary in words: used, skipped, not recognized, and what to decide."""
    counts = summary(report)
    objects = counts["objects"]
    classes = len(report.get("classes", ()))
    used = [
        ngettext("%(count)s image", "%(count)s images", counts["images"]["used"]) % _count(counts["images"]["used"]),
        ngettext("%(count)s annotation", "%(count)s annotations", objects["used"]) % _count(objects["used"]),
        ngettext("%(count)s class", "%(count)s classes", classes) % _count(classes),
    ]
    sentences = [_("Used: %(parts)s.") % {"parts": ", ".join(used)}]
    if objects["skipped"]:
        text = _("Skipped: %(skipped)s of %(total)s annotations.")
        sentences.append(text % {"skipped": Count(objects["skipped"]), "total": Count(objects["total"])})
    if count := counts["images"]["skipped"]:
        sentences.append(ngettext("Skipped: %(count)s image.", "Skipped: %(count)s images.", count) % _count(count))
    if count := counts["unused_label_files"]:
        text = ngettext(
            "Not used: %(count)s file that looks like annotations.",
            "Not used: %(count)s files that look like annotations.",
            count,
        )
        sentences.append(text % _count(count))
    count = counts["problems"]
    sentences.append(ngettext("%(count)s problem.", "%(count)s problems.", count) % _count(count))
    if "mask_folders" in counts["undecided"]:
        sentences.append(_("Decide whether the images of some folders are masks. Otherwise they become images."))
    if "sizes" in counts["undecided"]:
        text = _("All stated sizes differ from those of the images. Decide whether to scale the shapes by %(factor)s.")
        sentences.append(text % {"factor": report.get("scale", "")})
    if counts["unlabelled"]:
        sentences.append(
            _("No annotations would be imported. Correct the files, or allow an import without annotations.")
        )
    return sentences


def _count(count: int) -> dict[str, Any]:
    return {"count": Count(count)}


def agreement(report: Mapping[str, Any]) -> str:
    """What a user agrees to, as the text of a button."""
    counts = summary(report)
    objects = counts["objects"]
    if counts["unlabelled"]:
        count = counts["images"]["used"]
        return ngettext(
            "Import %(count)s image without annotations", "Import %(count)s images without annotations", count
        ) % {"count": Count(count)}
    if objects["skipped"]:
        return _("Skip %(skipped)s of %(total)s objects and import the rest") % {
            "skipped": Count(objects["skipped"]),
            "total": Count(objects["total"]),
        }
    count = counts["images"]["used"]
    return ngettext("Import %(count)s image", "Import %(count)s images", count) % {"count": Count(count)}
