"""Pages of an import: progress, report, agreement."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.timezone import localtime
from django.utils.translation import get_language
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.downloads import send_file, send_made
from aiplatform.lib.errors import DomainError, Invalid
from aiplatform.lib.files import open_beneath
from aiplatform.lib.pages import needs
from datasets.formats import detect, encodings
from datasets.forms.datasets import ImportSettingsForm
from datasets.models import Import
from datasets.services import class_names, datasets, import_summary, imports, problem_lists, report_wording
from datasets.services.import_options import Options
from datasets.storage import image_files

ENCODING_CODES = {"uncertain_encoding", "other_encoding"}


def _find(request: SignedInRequest, dataset_id: int, import_id: int) -> Import:
    visible = Import.objects.visible_to(request.user).select_related("dataset__owner", "upload", "version")
    row: Import = get_object_or_404(visible, pk=import_id, dataset_id=dataset_id)
    return row


@needs(Action.DATASETS_CREATE)
def import_detail(request: SignedInRequest, dataset_id: int, import_id: int) -> HttpResponse:
    """Progress, then the report, which stays. htmx asks for the inner part while a worker is at it."""
    row = _find(request, dataset_id, import_id)
    imports.nudge_if_forgotten(row)
    if row.state == Import.State.DONE and row.version_id and getattr(request, "htmx", None):
        answer = HttpResponse(status=204)
        answer["HX-Redirect"] = reverse("datasets:detail", args=[row.dataset_id])
        return answer
    template = "datasets/_import.html" if getattr(request, "htmx", None) else "datasets/import.html"
    return render(request, template, _shown(row))


def _shown(row: Import) -> dict[str, Any]:
    report = report_wording.to_display(row.report)
    can_commit = row.state == Import.State.REPORTED and not report.get("fatal")
    share = min(100, round(100 * row.done / row.total)) if row.total else None
    return {
        "row": row,
        "dataset": row.dataset,
        "report": report,
        "phase": report_wording.PHASES.get(row.phase, row.get_state_display()),
        "share": share,
        "format_name": _format_name(report.get("format", "")),
        "found_name": _format_name(report.get("found", "")),
        "groups": _groups(report),
        "summary": import_summary.summary(report),
        "summary_lines": import_summary.lines(report) if report else [],
        "agreement": import_summary.agreement(report),
        "encoding": Options.from_json(row.options).encoding,
        "offers_encoding": any(group["code"] in ENCODING_CODES for group in report.get("groups") or ()),
        "encodings": encodings.DETECTED,
        "scale": report.get("scale", ""),
        "sizes": Options.from_json(row.options).sizes,
        "unsure_masks": report.get("unsure_masks") or {},
        "kept_until": f"{localtime(imports.kept_until(row)):%Y-%m-%d}",
        "can_use_annotations": report.get("format") == "images" and report.get("found") not in {"images", None},
        "settings": ImportSettingsForm(row=row) if can_commit else None,
        "can_commit": can_commit,
        "can_name": row.state == Import.State.REPORTED and class_names.can_be_named(report),
        "most": max((item["count"] for item in report.get("classes", [])), default=1) or 1,
    }


def _format_name(name: str) -> str:
    format_ = detect.FORMATS.find(name)
    return str(format_.label) if format_ else ""


def _groups(report: dict[str, Any]) -> list[dict[str, Any]]:
    """The report's lines, in words; those of a report of before there were groups have no examples."""
    groups = report.get("groups")
    if groups is None:
        counts = report.get("problem_counts", {})
        groups = [{"code": code, "level": "problem", "count": n, "examples": []} for code, n in counts.items()]
    return [
        group
        | {
            "meaning": report_wording.meaning(group["code"], group["count"]),
            "more": max(group["count"] - len(group["examples"]), 0) if group["examples"] else 0,
        }
        for group in groups
    ]


def _apply_settings(row: Import, request: SignedInRequest, *, agreed: bool = False) -> bool:
    """Change description and visibility of the dataset, and check again where the splits change.

    Args:
        agreed: import by itself after that check.

    Returns:
        Whether the data is checked again.
    """
    form = ImportSettingsForm(request.POST, row=row)
    if not form.is_valid():
        raise Invalid(" ".join(str(text) for texts in form.errors.values() for text in texts))
    if "intro" in request.POST:
        values = {name: form.cleaned_data[name] for name in ("intro", "visibility") if form.cleaned_data.get(name)}
        datasets.edit(row.dataset, **{"intro": ""} | values)
    split = form.new_split() if "split" in request.POST else None
    if split is not None:
        imports.recheck(row, split=split, agreed=agreed)
    return split is not None


def _commit(row: Import, request: SignedInRequest) -> None:
    """Import the data. The button names what would be skipped, so pressing it is the consent."""
    names = _names(request)
    if row.state == Import.State.REPORTED and _apply_settings(row, request, agreed=not names):
        return
    imports.commit(row, by=request.user, names=names, allow_unlabelled=True)


ACTS: dict[str, Callable[[Import, SignedInRequest], object]] = {
    "commit": _commit,
    "cancel": lambda row, request: imports.cancel(row),
    "retry": lambda row, request: imports.retry(row),
    "with-annotations": lambda row, request: imports.recheck(row, annotated=True),
    "images-only": lambda row, request: imports.recheck(row, annotated=False),
    "options": lambda row, request: imports.recheck(row, options=_options(row, request)),
    "settings": _apply_settings,
}


def _names(request: SignedInRequest) -> dict[int, str]:
    """Class id → what was typed for it."""
    typed = {
        ids.number(key.removeprefix("class-")): str(value) for key, value in request.POST.items() if key[:6] == "class-"
    }
    return {number: name for number, name in typed.items() if number is not None}


def _options(row: Import, request: SignedInRequest) -> Options:
    """Return the import's options with the choices made on its report."""
    options = Options.from_json(row.options)
    folders = {
        key.removeprefix("mask-folder-"): str(value)
        for key, value in request.POST.items()
        if key.startswith("mask-folder-") and value
    }
    return replace(
        options,
        encoding=str(request.POST.get("encoding", options.encoding)).strip(),
        sizes=str(request.POST.get("sizes", options.sizes)),
        mask_folders={**options.mask_folders, **folders},
    )


@needs(Action.DATASETS_CREATE)
@require_POST
def import_act(request: SignedInRequest, dataset_id: int, import_id: int, act: str) -> HttpResponse:
    """Agree, cancel, retry, or read the same files with other settings."""
    row = _find(request, dataset_id, import_id)
    if act not in ACTS:
        raise Http404
    try:
        ACTS[act](row, request)
    except Invalid as refusal:  # a name of a class
        shown = _shown(row)
        typed = _names(request)
        for item in shown["report"].get("classes", []):
            item["name"] = typed.get(item["id"], item["name"])
        return render(request, "datasets/import.html", shown | {"refusal": refusal.message}, status=422)
    if act == "cancel":
        row.dataset.refresh_from_db()
        return redirect("datasets:list") if row.dataset.deleting else redirect("datasets:detail", row.dataset_id)
    return redirect("datasets:import", row.dataset_id, row.pk)


@needs(Action.DATASETS_CREATE)
def import_preview(request: SignedInRequest, dataset_id: int, import_id: int) -> HttpResponseBase:
    """A thumbnail of one of the images that the report shows as examples."""
    row = _find(request, dataset_id, import_id)
    path = request.GET.get("path", "")
    shown = {name for pair in (row.report.get("unsure_masks") or {}).values() for name in pair}
    root = Path(row.server_path) if row.server_path else row.folder / "files"
    descriptor = _opened(root / row.report.get("wrapper", ""), path) if path in shown else None
    if descriptor is None:
        raise Http404
    try:
        with os.fdopen(descriptor, "rb") as file:
            data = image_files.thumbnail(file)
    except image_files.BadImage:
        raise Http404 from None
    return HttpResponse(data, content_type="image/webp", headers={"Cache-Control": "private, max-age=600"})


@needs(Action.DATASETS_CREATE)
def import_problems(request: SignedInRequest, dataset_id: int, import_id: int) -> HttpResponseBase:
    """Every problem as CSV: file, code, sentence."""
    row = _find(request, dataset_id, import_id)
    folder = row.version.path if row.state == Import.State.DONE and row.version else row.folder
    name = f"{row.dataset.name}-problems.csv"
    if (descriptor := _opened(folder, problem_lists.NAME)) is not None:
        made = partial(problem_lists.as_csv, language=get_language() or "en")
        return send_made(request, descriptor, made, name, "text/csv; charset=utf-8")
    if (descriptor := _opened(folder, problem_lists.OLD_NAME)) is not None:
        return send_file(request, descriptor, name)
    raise Http404


def _opened(folder: Path, name: str) -> int | None:
    try:
        return open_beneath(folder, name)
    except (OSError, DomainError):
        return None
