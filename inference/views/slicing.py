"""Pages of parts of the images that evaluations judged."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.http import require_safe

from accounts.http import SignedInRequest
from accounts.permissions import Action
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError, NotFound
from aiplatform.lib.pages import needs
from inference.models import SPLIT_WORDS, Evaluation
from inference.services import differences, slices
from inference.services.slices import ASKED, COUNT, LIGHT, MARK, OBJECT, PIXELS, SPLIT, Asked, Slice
from inference.task_kinds import TASKS
from inference.views.comparing import cell, numbers_of, query_of

BY_WORDS = {
    SPLIT: gettext_lazy("Split"),
    PIXELS: gettext_lazy("Size of the image"),
    LIGHT: gettext_lazy("Brightness"),
    COUNT: gettext_lazy("Objects on it"),
    OBJECT: gettext_lazy("Size of objects"),
    MARK: gettext_lazy("Mark"),
    ASKED: gettext_lazy("Asked for"),
}
NAME_WORDS = {
    (PIXELS, "small"): gettext_lazy("below 0.25 million pixels"),
    (PIXELS, "medium"): gettext_lazy("0.25 to 1 million pixels"),
    (PIXELS, "large"): gettext_lazy("1 to 4 million pixels"),
    (PIXELS, "huge"): gettext_lazy("from 4 million pixels on"),
    (LIGHT, "dark"): gettext_lazy("dark (below 85 of 255)"),
    (LIGHT, "medium"): gettext_lazy("medium (85 to 170)"),
    (LIGHT, "bright"): gettext_lazy("bright (from 170 on)"),
    (COUNT, "none"): pgettext_lazy("objects", "none"),
    (COUNT, "one"): gettext_lazy("one object"),
    (COUNT, "some"): gettext_lazy("2 to 5 objects"),
    (COUNT, "many"): gettext_lazy("more than 5 objects"),
    (OBJECT, "small"): gettext_lazy("small objects (below 32² pixels)"),
    (OBJECT, "medium"): gettext_lazy("medium objects (32² to 96²)"),
    (OBJECT, "large"): gettext_lazy("large objects (from 96² on)"),
}


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def evaluation_slices(request: SignedInRequest, pk: int) -> HttpResponse:
    """Parts of the images of an evaluation, worst first; `?q=`, `?class=` and `?split=` ask for one of one's own."""
    try:
        rows = [slices.chosen(request.user, pk)]
        context = _shown(request, rows, rows[0])
    except NotFound:
        raise
    except DomainError as refusal:
        return render(request, "inference/_slices.html", {"refusals": refusal.every}, status=refusal.status)
    return render(request, "inference/_slices.html", context)


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def compared_slices(request: SignedInRequest) -> HttpResponse:
    """The same parts of 2 to 6 evaluations beside each other, see `comparing.compare`."""
    try:
        base = ids.number(request.GET.get("base", ""))
        rows, first = differences.chosen(request.user, numbers_of(request), base=base)
        context = _shown(request, rows, first)
    except NotFound:
        raise
    except DomainError as refusal:
        return render(request, "inference/_slices.html", {"refusals": refusal.every}, status=refusal.status)
    return render(request, "inference/_slices.html", context)


def asked_of(request: SignedInRequest) -> Asked:
    """The part that the address of a page asks for."""
    given = request.GET
    return Asked(given.get("q", "")[:100], ids.number(given.get("class", "")), given.get("split", "")[:10])


def _shown(request: SignedInRequest, rows: list[Evaluation], base: Evaluation) -> dict[str, Any]:
    asked = asked_of(request)
    found = slices.of(rows, base, asked=asked, by=request.user)
    version = base.version
    return {
        "rows": rows,
        "base": base,
        "lines": [(by_word(one), name_word(one), one, cells_of(one)) for one in found],
        "figure": figure_word(rows[0], found),
        "few": differences.FEW_IMAGES,
        "asked": asked,
        "classes": version.classes if version else [],
        "splits": [(name, SPLIT_WORDS.get(name, name)) for name, count in (version.splits if version else {}).items()
                   if name and count],
        "url": request.path,
        "hidden": [("evaluation", row.pk) for row in rows] + [("base", base.pk)] if len(rows) > 1 else [],
        "query": query_of(rows, base=base.pk) if len(rows) > 1 else "",
    }  # fmt: skip


def cells_of(one: Slice) -> list[Any]:
    """Its figures as text, of each evaluation; none where none can be had."""
    return [cell(value) for value in one.row.values] if one.row else []


def figure_word(first: Evaluation, found: list[Slice]) -> str:
    """What the figure of most parts is called."""
    rows = [one.row for one in sorted(found, key=lambda one: one.by == OBJECT) if one.row]
    return _(rows[0].label) if rows else _(TASKS[first.task].pages.figures[0].label)


def by_word(one: Slice) -> Any:
    """What a part is a part by, for people."""
    return BY_WORDS[one.by]


def name_word(one: Slice) -> Any:
    """Which part it is, for people."""
    if one.by == ASKED:
        return _("your images")
    if one.by == SPLIT:
        return SPLIT_WORDS.get(one.name, _("in no split")) if one.name in ("none", *SPLIT_WORDS) else one.name
    return NAME_WORDS.get((one.by, one.name), one.name)
