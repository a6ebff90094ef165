"""Results to take along, made while they are sent: COCO, CSV, JSON lines."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from aiplatform.lib import tables
from aiplatform.lib.downloads import attachment, streamed
from aiplatform.lib.errors import DomainError, NotFound
from inference.batch import results
from inference.batch.models import Prediction
from inference.kit.contracts.served_task import SHAPES
from inference.registry import prediction_lines, prediction_shapes

FORMS = {"csv": "text/csv; charset=utf-8", "coco": "application/json", "jsonl": "application/jsonl"}
ENDINGS = {"csv": ".csv", "coco": "_coco.json", "jsonl": ".jsonl"}
HEADER = ("path", "width", "height", "class_id", "class", "score", "x1", "y1", "x2", "y2", "more")
OWN = {"class_id", "name", "score"}  # of an answer; the columns have them
LARGE = {"mask", "heat", "vector"}  # too large for a table; JSON lines have them
AT_ONCE = 200  # rows that are sent together

_T = TypeVar("_T")


class NoPlaces(DomainError, code="no_places"):
    """Answers of this task lie nowhere on a picture."""


def has_places(prediction: Prediction) -> bool:
    """Whether its answers can be given as COCO."""
    return prediction_shapes.draft_of(prediction.task) == SHAPES


def send(request: HttpRequest, prediction: Prediction, form: str) -> HttpResponseBase:
    """Return a download of all predictions so far.

    Raises:
        NotFound: there is none yet.
        NoPlaces: COCO is requested for predictions without locations.
    """
    if form == "coco" and not has_places(prediction):
        message = _(
            "COCO stores locations in images, and the predictions of this task have none. Choose CSV or JSON lines."
        )
        raise NoPlaces(message)
    if not results.load(prediction).get("done"):
        raise NotFound(_("No predictions yet."))
    made = {"csv": _csv, "coco": _coco, "jsonl": _lines}[form](prediction)
    response = streamed(request, made)
    response["Content-Type"] = FORMS[form]
    response["Content-Disposition"] = attachment(f"{prediction.job.name}{ENDINGS[form]}")
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "private, no-store"
    return response


def _csv(prediction: Prediction) -> Generator[bytes]:
    yield _rows([HEADER], begin=tables.BOM)
    for some in _portions(_table(prediction)):
        yield _rows(some)


def _rows(rows: Iterable[Iterable[object]], *, begin: str = "") -> bytes:
    out = io.StringIO()
    out.write(begin)
    tables.write_rows(out, rows)
    return out.getvalue().encode(errors="replace")


def _table(prediction: Prediction) -> Iterator[tuple[object, ...]]:
    """Yield one row for each prediction; an image without any has none."""
    for line in results.lines(prediction):
        for answer in line.get("predictions", ()):
            box = prediction_shapes.box_of(answer, line["width"], line["height"]) or ("",) * 4
            more = prediction_shapes.rest_of(answer, OWN | LARGE)
            yield (
                line["path"], line["width"], line["height"], _cell(answer.get("class_id")),
                prediction_lines.word(answer.get("name"), 200), prediction_shapes.score_of(answer), *box,
                json.dumps(more, ensure_ascii=False) if more else "",
            )  # fmt: skip


def _cell(value: Any) -> object:
    return value if isinstance(value, int) and not isinstance(value, bool) else ""


def _lines(prediction: Prediction) -> Generator[bytes]:
    for some in _portions(results.lines(prediction)):
        yield "".join(f"{json.dumps(line)}\n" for line in some).encode()


def _portions(entries: Iterable[_T]) -> Iterator[list[_T]]:
    rest = iter(entries)
    while some := list(islice(rest, AT_ONCE)):
        yield some


def _coco(prediction: Prediction) -> Generator[bytes]:
    yield from coco(prediction)


def coco(prediction: Prediction, *, min_score: float = 0.0) -> Generator[bytes]:
    """A COCO file of all pictures that were answered, with what was found on them and its scores."""
    info = {"description": f"Answers of {prediction.model_label}", "predicted_by": prediction.model_label}
    categories = [{"supercategory": "", **entry} for entry in prediction.classes]
    yield f'{{"info": {json.dumps(info)}, "categories": {json.dumps(categories)}, "images": ['.encode()
    yield from _joined(_images(prediction))
    yield b'], "annotations": ['
    yield from _joined(_annotations(prediction, min_score))
    yield b"]}\n"


def _images(prediction: Prediction) -> Iterator[dict[str, Any]]:
    for line in results.lines(prediction):
        if "error" not in line:
            size = {name: line[name] for name in ("width", "height")}
            yield {"id": line["n"] + 1, "file_name": line["path"], **size}


def _annotations(prediction: Prediction, min_score: float) -> Iterator[dict[str, Any]]:
    number = 0
    for line in results.lines(prediction):
        for shape in prediction_shapes.to_coco(line, prediction.classes, min_score=min_score):
            number += 1
            yield {"id": number, "image_id": line["n"] + 1, **shape}


def _joined(entries: Iterable[dict[str, Any]]) -> Generator[bytes]:
    between = b""
    for some in _portions(entries):
        yield between + b",\n".join(json.dumps(entry).encode() for entry in some)
        between = b",\n"
