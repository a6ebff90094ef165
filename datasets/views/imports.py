"""Pages of an import: progress, report, agreement."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from accounts.http import SignedInRequest
from accounts.permissions import Action
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import DomainError
from aiplatform.lib.files import open_beneath
from aiplatform.lib.pages import needs
from datasets.models import Import
from datasets.services import imports

FORMATS = {"coco": "COCO", "voc": "Pascal VOC", "folders": _("One folder per class"), "images": _("Images only")}
PHASES = {
    "unpacking": _("Unpacking"),
    "reading": _("Reading the annotations"),
    "checking": _("Looking at every image"),
    "moving": _("Putting the images in place"),
    "writing": _("Writing the version"),
}
#: code → what it means for the data, in the report's summary.
CODES = {
    "degenerate_box": _("boxes without area, left out"),
    "degenerate_polygon": _("polygons without area, left out"),
    "degenerate_mask": _("empty masks, left out"),
    "short_polygon": _("polygons of fewer than three points, left out"),
    "bad_image": _("images that cannot be read, left out"),
    "bad_name": _("images whose name cannot be kept, left out"),
    "not_an_image": _("files of a kind that is not taken, left out"),
    "missing_image": _("images that are named but not there"),
    "unlisted_image": _("images no annotation file names, left out"),
    "duplicate_image": _("images listed more than once"),
    "same_content": _("images that are the same as another"),
    "no_class": _("objects or images without a class, left out"),
    "two_splits": _("images in two splits"),
    "other_size": _("images of another size than stated"),
    "outside_image": _("shapes off the image, left out"),
    "clipped_box": _("boxes cut at the image's edge"),
    "beyond_edge": _("shapes that stick out of the image, kept"),
    "rotated": _("images stored rotated"),
    "unreadable": _("annotation files that cannot be read"),
    "bad_box": _("boxes that cannot be read"),
}


def _find(request: SignedInRequest, dataset_id: int, import_id: int) -> Import:
    visible = Import.objects.visible_to(request.user).select_related("dataset__owner", "upload", "version")
    row: Import = get_object_or_404(visible, pk=import_id, dataset_id=dataset_id)
    return row


@needs(Action.DATASETS_CREATE)
def import_detail(request: SignedInRequest, dataset_id: int, import_id: int) -> HttpResponse:
    """Progress, then the report, then the version. htmx asks for the inner part while a worker is at it."""
    row = _find(request, dataset_id, import_id)
    imports.nudge_if_forgotten(row)
    if row.state == Import.State.DONE and row.version_id:
        if getattr(request, "htmx", None):
            answer = HttpResponse(status=204)
            answer["HX-Redirect"] = reverse("datasets:detail", args=[row.dataset_id])
            return answer
        return redirect("datasets:detail", row.dataset_id)
    template = "datasets/_import.html" if getattr(request, "htmx", None) else "datasets/import.html"
    return render(request, template, _shown(row))


def _shown(row: Import) -> dict[str, Any]:
    report = row.report
    share = min(100, round(100 * row.done / row.total)) if row.total else None
    return {
        "row": row,
        "dataset": row.dataset,
        "report": report,
        "phase": PHASES.get(row.phase, row.get_state_display()),
        "share": share,
        "format_name": FORMATS.get(report.get("format", ""), ""),
        "found_name": FORMATS.get(report.get("found", ""), ""),
        "counts": [
            {"code": code, "count": count, "meaning": CODES.get(code, code)}
            for code, count in report.get("problem_counts", {}).items()
        ],
        "can_use_annotations": report.get("format") == "images" and report.get("found") not in {"images", None},
        "can_commit": row.state == Import.State.REPORTED and not report.get("fatal"),
        "most": max((item["count"] for item in report.get("classes", [])), default=1) or 1,
    }


ACTS = {
    "commit": lambda row, request: imports.commit(row, by=request.user),
    "cancel": lambda row, request: imports.cancel(row),
    "retry": lambda row, request: imports.retry(row),
    "with-annotations": lambda row, request: imports.recheck(row, annotated=True),
    "images-only": lambda row, request: imports.recheck(row, annotated=False),
}


@needs(Action.DATASETS_CREATE)
@require_POST
def import_act(request: SignedInRequest, dataset_id: int, import_id: int, act: str) -> HttpResponse:
    """Agree, cancel, retry, or read the same files with other settings."""
    row = _find(request, dataset_id, import_id)
    if act not in ACTS:
        raise Http404
    ACTS[act](row, request)
    if act == "cancel":
        return redirect("datasets:detail", row.dataset_id)
    return redirect("datasets:import", row.dataset_id, row.pk)


@needs(Action.DATASETS_CREATE)
def import_problems(request: SignedInRequest, dataset_id: int, import_id: int) -> HttpResponseBase:
    """Every problem as CSV: file, code, sentence."""
    row = _find(request, dataset_id, import_id)
    try:
        descriptor = open_beneath(row.folder, "problems.csv")
    except (OSError, DomainError):
        raise Http404 from None
    return send_file(request, descriptor, f"{row.dataset.name}-problems.csv")
