"""Pages of parts of the images that evaluations judged."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError, NotFound
from aiplatform.lib.pages import needs
from inference.evaluation import differences, slices
from inference.evaluation.comparison_views import numbers_of, query_of
from inference.evaluation.models import SPLIT_LABELS, Evaluation
from inference.evaluation.presentation.names import short_names
from inference.evaluation.presentation.slices import build_table
from inference.evaluation.slices import ImageFilter


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def evaluation_slices(request: SignedInRequest, pk: int) -> HttpResponse:
    """Parts of the images of an evaluation, worst first; `?q=`, `?class=` and `?split=` ask for one of one's own."""
    try:
        rows = [slices.find_evaluation(request.user, pk)]
        context = _context(request, rows, rows[0])
    except NotFound:
        raise
    except DomainError as refusal:
        return render(request, "inference/_slices.html", {"refusals": refusal.every}, status=refusal.status)
    return render(request, "inference/_slices.html", context)


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def compared_slices(request: SignedInRequest) -> HttpResponse:
    """The same slices of 2 to 6 evaluations side by side, see `comparison_views.compare`."""
    try:
        base = ids.number(request.GET.get("base", ""))
        rows, first = differences.select_evaluations(request.user, numbers_of(request), base=base)
        context = _context(request, rows, first)
    except NotFound:
        raise
    except DomainError as refusal:
        return render(request, "inference/_slices.html", {"refusals": refusal.every}, status=refusal.status)
    return render(request, "inference/_slices.html", context)


def filter_from(request: SignedInRequest) -> ImageFilter:
    """Return the filter in the query of a page."""
    query = request.GET
    return ImageFilter(query.get("q", "")[:100], ids.number(query.get("class", "")), query.get("split", "")[:10])


def _context(request: SignedInRequest, rows: list[Evaluation], base: Evaluation) -> dict[str, Any]:
    image_filter = filter_from(request)
    parts = slices.compute(rows, base, image_filter=image_filter, by=request.user)
    version = base.version
    return {
        "rows": rows,
        "base": base,
        "told": build_table(rows[0], parts),
        "names": short_names(rows),
        "few": differences.MIN_IMAGES,
        "asked": image_filter,
        "classes": version.classes if version else [],
        "splits": [(name, SPLIT_LABELS.get(name, name)) for name, count in (version.splits if version else {}).items()
                   if name and count],
        "url": request.path,
        "hidden": [("evaluation", row.pk) for row in rows] + [("base", base.pk)] if len(rows) > 1 else [],
        "query": query_of(rows, base=base.pk) if len(rows) > 1 else "",
    }  # fmt: skip
