"""An evaluation as one file of HTML: styles, charts and images inline, no script, no network request.

It is frozen: it says when it was made and for whom. A browser prints it well, also into a PDF.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.template.loader import render_to_string
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from accounts.models import User
from aiplatform.lib import titles
from aiplatform.lib.downloads import attachment
from aiplatform.lib.errors import DomainError, NotFound
from aiplatform.lib.numbers import finite
from datasets.models import DatasetVersion
from datasets.services import thumbnails
from datasets.storage import image_files
from inference.evaluation import results, slices
from inference.evaluation.custom_scripts import presentation as telling_of_script
from inference.evaluation.models import Evaluation
from inference.evaluation.presentation import curves
from inference.evaluation.presentation import results as judged
from inference.evaluation.presentation import slices as parts
from inference.evaluation.presentation.colors import colors_of
from inference.evaluation.presentation.names import parameter_word
from inference.evaluation.presentation.tiles import conditions, left_out, tiles
from inference.kit.task_kinds import TASKS
from inference.registry.task_labels import NONE
from workers.core.clock import now

SHEETS = ("reports/export.css", "inference/evaluation.css", "inference/charts.css", "inference/report.css")
IMAGES = 12
MAX_CELLS = 30  # classes of a confusion matrix that a page of paper holds
MAX_CLASSES = 200
BOX = 6  # numbers of an answer with a box: class, score, corners


def html(evaluation: Evaluation, reader: User) -> str:
    """Return the file, as this user sees the evaluation now.

    Raises:
        NotFound: it has no results yet.
    """
    content = results.load(evaluation)
    if content is None or not isinstance(content.get("summary"), dict):
        raise NotFound(_("This evaluation has no results yet."))
    task = TASKS.get(evaluation.task)
    script = telling_of_script.facts(evaluation) if evaluation.is_scripted else None
    context: dict[str, Any] = {
        "script": script,
        "evaluation": evaluation,
        "found": content,
        "reader": reader,
        "made_at": now(),
        "styles": _styles(),
        "pages": task.pages if task else None,
        "tiles": tiles(evaluation.task, content),
        "conditions": conditions(evaluation, content["summary"]),
        "left_out": "" if script else left_out(evaluation.task, content),
        "parameters": script["params"] if script else _parameters(content),
        "classes": _classes(content),
        "confusion": _confusion(content),
        "curves": curves.draw(content),
        "mistakes": judged.mistakes_of(content),
        "robustness": judged.robustness_of(content, evaluation.task),
        "images": _images(evaluation, reader, content["summary"].get("threshold")),
        "names": {entry["id"]: entry["name"] for entry in content.get("classes", [])},
        "colors": colors_of(evaluation, content),
        **_parts(evaluation),
        **_calibration(evaluation),
    }
    return render_to_string("inference/evaluation_report.html", context)


def file_name(evaluation: Evaluation) -> str:
    """A name for the file."""
    return ".".join([titles.derive_name(evaluation.job.name, room=80), "html"])


def answer(evaluation: Evaluation, reader: User) -> HttpResponse:
    """The file as a download."""
    sent = HttpResponse(html(evaluation, reader), content_type="text/html; charset=utf-8")
    sent["Content-Disposition"] = attachment(file_name(evaluation))
    return sent


def _as_table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _parameters(content: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """What it was judged by, named as in the form."""
    return [(parameter_word(name), value) for name, value in sorted(_as_table(content.get("parameters")).items())]


def _classes(content: Mapping[str, Any]) -> list[tuple[str, Any, list[str]]]:
    """Return name, number of objects and metrics of each class."""
    keys = ("ap", "ap50", "precision", "recall", "f1")
    rows = content.get("classes", [])[:MAX_CLASSES]
    silent = curves.unanswered(content)
    return [
        (
            str(entry.get("name")),
            entry.get("truths"),
            [NONE if key == "precision" and entry.get("id") in silent else _figure(entry.get(key)) for key in keys],
        )
        for entry in rows
    ]


def _figure(value: Any) -> str:
    number = finite(value)
    return NONE if number is None else f"{number:.3f}"


def _confusion(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return labels and rows of the confusion matrix; None if there is none, or it is too large for print."""
    confusion = _as_table(content.get("confusion"))
    labels, matrix = confusion.get("labels"), confusion.get("matrix")
    if not isinstance(labels, list) or not isinstance(matrix, list) or len(labels) > MAX_CELLS:
        return None
    named = [str(label) or _("background") for label in labels]
    return {"labels": named, "rows": list(zip(named, matrix, strict=False))}


def _parts(evaluation: Evaluation) -> dict[str, Any]:
    """Return the slices; None if they cannot be computed."""
    try:
        compared = slices.compute([evaluation], evaluation)
    except DomainError:
        return {"parts": None}
    return {"parts": parts.build_table(evaluation, compared)}


def _calibration(evaluation: Evaluation) -> dict[str, Any]:
    try:
        return judged.calibration_context(evaluation)
    except DomainError:
        return {}


def _images(evaluation: Evaluation, reader: User, threshold: Any) -> list[tuple[dict[str, Any], str]]:
    """Return the worst images with thumbnails and predictions above the threshold, for readers of the dataset."""
    version = DatasetVersion.objects.visible_to(reader).filter(pk=evaluation.version_id or 0).first()
    if version is None:
        return []
    entries, _more = results.images(evaluation, count=IMAGES)
    assets = {row.path: row for row in version.assets.filter(path__in=[str(entry["path"]) for entry in entries])}
    rows = []
    for entry in entries:
        asset = assets.get(str(entry["path"]))
        try:
            data = thumbnails.read(asset) if asset else b""
        except (image_files.BadImage, OSError, DomainError):
            data = b""
        address = f"data:image/webp;base64,{base64.b64encode(data).decode()}" if data else ""
        rows.append((_above_threshold(entry, finite(threshold) or 0.0), address))
    return rows


def _above_threshold(entry: dict[str, Any], threshold: float) -> dict[str, Any]:
    """Return the entry of an image with only predictions that reach a score; of tasks whose predictions have boxes."""
    answers = entry.get("answers")
    if not isinstance(answers, list) or not all(isinstance(answer, list) and len(answer) >= BOX for answer in answers):
        return entry
    indices = [index for index, answer in enumerate(answers) if (finite(answer[1]) or 0.0) >= threshold]
    beside = {
        name: [entry[name][index] for index in indices]
        for name in ("outlines",)
        if isinstance(entry.get(name), list) and len(entry[name]) == len(answers)
    }
    return entry | beside | {"answers": [answers[index] for index in indices]}


@cache
def _styles() -> SafeString:
    dark = f"@media screen and (prefers-color-scheme: dark) {{\n{_sheet('base/dark.css')}}}\n"  # paper is light
    sheets = [_sheet("base/tokens.css"), dark, *map(_sheet, SHEETS)]
    return mark_safe("\n".join(sheets))  # noqa: S308 - files of ours


def _sheet(name: str) -> str:
    path = finders.find(name)
    assert isinstance(path, str), name
    return Path(path).read_text()
