"""Pages that compare evaluations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError, Invalid, NotFound
from aiplatform.lib.pages import needs
from inference.evaluation import differences, model_comparison, results
from inference.evaluation import script_metrics as script_figures
from inference.evaluation.custom_scripts import scripts
from inference.evaluation.differences import Comparison
from inference.evaluation.models import Evaluation
from inference.evaluation.presentation.cells import VERDICTS, cell
from inference.evaluation.presentation.colors import colors_of
from inference.evaluation.presentation.names import parameter_word, short_names
from inference.evaluation.presentation.tiles import left_out, shown_keys
from inference.evaluation.views import pages_of
from inference.kit.task_kinds import TASKS
from inference.registry import version_labels, version_tables
from inference.registry.task_labels import NONE

PER_PAGE = 6
SHOWN = {
    "differ": gettext_lazy("Largest differences"),
    "only_first": gettext_lazy("Only %(first)s is correct"),
    "only_second": gettext_lazy("Only %(second)s is correct"),
    "both_wrong": gettext_lazy("Neither is correct"),
}


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def compare(request: SignedInRequest) -> HttpResponse:
    """`?evaluation=1&evaluation=2[&base=1]`: their figures, differences, and images on which they disagree."""
    try:
        rows, base = differences.select_evaluations(
            request.user, numbers_of(request), base=ids.number(request.GET.get("base", ""))
        )
        comparison = differences.compare(rows, base)
    except NotFound:
        raise
    except DomainError as refusal:
        return render(request, "inference/compare_refused.html", {"refusals": refusal.every}, status=refusal.status)
    others = [row for row in rows if row.pk != base.pk]
    content = results.load(base) or {}
    keys = shown_keys(base.task, len(content.get("classes", [])))

    def is_shown(key: str) -> bool:
        return comparison.by_name or key in keys

    by_pk = {row.pk: row for row in rows}
    context: dict[str, Any] = {
        "rows": rows,
        "base": base,
        "names": short_names(rows),
        "found": comparison,
        "figures": [
            (_(row.label), [(value.evaluation == base.pk, cell(value)) for value in row.values])
            for row in comparison.rows
            if is_shown(row.key)
        ],
        "told": [
            (label, [(row.pk == base.pk, value) for row, value in zip(rows, values, strict=True)])
            for label, values in _without_interval(comparison, rows, is_shown)
        ],
        "left_out": "" if comparison.by_name else left_out(base.task, content),
        "few": differences.MIN_IMAGES if not comparison.by_name and comparison.images < differences.MIN_IMAGES else 0,
        "mcnemar": [(by_pk[test.evaluation], test, VERDICTS[test.verdict]) for test in comparison.mcnemar],
        "differing": _differing_settings(rows),
        "images_urls": [(other, _images_url(base, other)) for other in others if not comparison.by_name],
        "rebase": {row.pk: query_of(rows, base=row.pk) for row in rows},
        "pages": pages_of(base),
        "slices_url": f"{reverse('inference:evaluation-compared-slices')}?{query_of(rows, base=base.pk)}",
    }
    return render(request, "inference/compare.html", context)


@needs(Action.EVALUATIONS_VIEW)
@require_safe
def compared_images(request: SignedInRequest) -> HttpResponse:
    """A part of the gallery: images of two evaluations side by side; `?show=` see `differences.disagreements`."""
    rows, _base = differences.select_evaluations(request.user, numbers_of(request))
    if len(rows) != 2:
        raise Invalid(_("Select two evaluations."), field="evaluation")
    show, begin = request.GET.get("show", "differ"), min(ids.number(request.GET.get("begin", "0")) or 0, 10**8)
    pairs, more = differences.disagreements((rows[0], rows[1]), show=show, begin=begin, count=PER_PAGE)
    contents = [results.load(row) or {} for row in rows]
    thresholds = [content.get("summary", {}).get("threshold", 0) or 0 for content in contents]
    pages = pages_of(rows[0])
    above = bool(pages and pages.threshold)
    short = short_names(rows)
    context = {
        "pairs": [
            [(row, _above_threshold(entry, least) if above else entry)
             for row, entry, least in zip(rows, pair, thresholds, strict=True)]
            for pair in pairs
        ],
        "pages": pages,
        "names": {c["id"]: c["name"] for c in contents[0].get("classes", [])},
        "colors": colors_of(rows[0], contents[0]),
        "shows_images": rows[0].version_id is not None,
        "choices": [
            (word, SHOWN[word] % {"first": short[rows[0].pk], "second": short[rows[1].pk]},
             _images_url(*rows, show=word))
            for word in _available_views(rows[0])
        ],
        "short": short,
        "show": show,
        "begin": begin,
        "next_url": _images_url(*rows, show=show, begin=begin + PER_PAGE) if more else "",
    }  # fmt: skip
    return render(request, "inference/_compared_images.html", context)


@needs(Action.MODELS_VIEW)
@require_safe
def compare_models(request: SignedInRequest) -> HttpResponse:
    """`?model=1&model=2`: their versions in use, fact by fact, and their evaluations on the same data."""
    numbers = [number for text in request.GET.getlist("model") if (number := ids.number(text)) is not None]
    versions = model_comparison.select_versions(request.user, numbers)
    everything = request.GET.get("all") == "1"
    can_see = request.user.can(Action.EVALUATIONS_VIEW)
    context = {
        "versions": versions,
        "lines": version_labels.lines(versions, versions[0], everything=everything),
        "everything": everything,
        "same_data": version_tables.same_data(versions),
        "shared": model_comparison.shared_evaluations(request.user, versions) if can_see else [],
        "query": urlencode([("model", version.model_id) for version in versions]),
    }
    return render(request, "inference/models_compare.html", context)


def numbers_of(request: HttpRequest) -> list[int]:
    """Return the ids of the evaluations in the query of a page."""
    numbers = [ids.number(text) for text in request.GET.getlist("evaluation")]
    return [number for number in numbers if number is not None]


def _available_views(evaluation: Evaluation) -> list[str]:
    return list(SHOWN) if TASKS[evaluation.task].right is not None else ["differ"]


def _above_threshold(entry: dict[str, Any], least: float) -> dict[str, Any]:
    """Return an entry with the predictions that count: a comparison has no slider for the threshold."""
    return {**entry, "answers": [answer for answer in entry.get("answers", []) if answer[1] >= least]}


def query_of(rows: list[Evaluation], **more: Any) -> str:
    """The part of an address that names evaluations."""
    return urlencode([*(("evaluation", row.pk) for row in rows), *more.items()])


def _images_url(first: Evaluation, second: Evaluation, **more: Any) -> str:
    return f"{reverse('inference:evaluation-compared-images')}?{query_of([first, second], **more)}"


def _without_interval(
    comparison: Comparison, rows: list[Evaluation], is_shown: Callable[[str], bool]
) -> list[tuple[str, list[str]]]:
    """Return the metrics without a confidence interval, with the values of the evaluations."""
    task = TASKS.get(rows[0].task)
    labels = {figure.key: _(figure.label) for figure in task.pages.figures} if task else {}
    summaries = [(results.load(row) or {}).get("summary", {}) for row in rows]
    keys = [key for key in comparison.only_told if is_shown(key)]
    return [(labels.get(key, key), [_format_value(_value(summary, key)) for summary in summaries]) for key in keys]


def _value(summary: dict[str, Any], key: str) -> Any:
    """A figure of an evaluation; a script may write its name with other capital letters."""
    return summary.get(key, next((value for name, value in summary.items() if name.lower() == key.lower()), None))


def _format_value(value: Any) -> str:
    return script_figures.format_number(value) if isinstance(value, int | float) else NONE


def _differing_settings(rows: list[Evaluation]) -> list[tuple[str, list[Any]]]:
    """Return the settings in which the evaluations differ: model, threshold, engine and the like."""
    models = [row.model_label for row in rows]
    lines: list[tuple[str, list[Any]]] = [(_("Model"), models)] if len(set(models)) > 1 else []
    params_of_rows = [scripts.shown_params(row) for row in rows]
    for key in sorted({key for params in params_of_rows for key in params}):
        values = [params.get(key) for params in params_of_rows]
        if any(value != values[0] for value in values):
            lines.append((parameter_word(key), [NONE if value is None else value for value in values]))
    return lines
