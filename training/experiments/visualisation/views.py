"""The page on which runs are looked at: curves, images, histograms, texts, graphs, vectors."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import needs
from training.experiments.boards import panel as boards
from training.experiments.visualisation import runs, snippets
from workers.core import kinds
from workers.jobs.orders import ORDERING
from workers.jobs.output import media
from workers.jobs.output.reporting import notes

MAX_WORDS_LENGTH = 100


@needs(Action.JOBS_VIEW)
@require_safe
def show(request: SignedInRequest) -> HttpResponse:
    """Show the runs of `?run=`, repeated for each, by `?view=`; without any, the runs to choose from."""
    numbers = [number for text in request.GET.getlist("run") if (number := ids.number(text)) is not None]
    if not numbers:
        return _choice(request)
    try:
        chosen = runs.chosen(request.user, numbers)
    except DomainError as refused:
        return _choice(request, refused)
    keys, view = runs.curve_keys(chosen), runs.view_of(request.GET.get("view", ""))
    counts = runs.counts(chosen, keys)
    if "view" not in request.GET and not counts[view.name]:  # begin with what there is
        view = next((each for each in runs.VIEWS if counts[each.name]), view)
    query = "&".join(f"run={run.pk}" for run in chosen)
    missed: dict[str, int] = {}
    for run in chosen:
        for code, count in media.missed(run).items():
            missed[code] = missed.get(code, 0) + count
    context = {
        "runs": chosen,
        "view": view,
        "views": [(each, counts[each.name], f"?{query}&view={each.name}") for each in runs.VIEWS],
        "keys": keys,
        "series": runs.series(chosen, view.kind) if view.kind else [],
        "parameters": runs.parameters(chosen) if view.name == "parameters" else [],
        "notes": notes.list_messages(missed),
        "boards": [(run, board) for run in chosen[:3] if (board := boards.shown(run, request.user)) is not None],
        "snippets": snippets.SNIPPETS,
        "open_snippets": True,
        "empty": not counts[view.name],
    }
    return render(request, "visualisation/show.html", context)


def _choice(request: SignedInRequest, refused: DomainError | None = None) -> HttpResponse:
    query = request.GET.get("q", "")[:MAX_WORDS_LENGTH]
    page = ORDERING.page(request, runs.offered(request.user, query))
    runs.add_contents(page.rows)
    for run in page.rows:
        run.kind_label = kinds.label_of(run.kind)
    context = {
        "page": page,
        "refused": refused,
        "snippets": snippets.SNIPPETS,
        "open_snippets": not page.rows and not query,
        "most": runs.MAX_RUNS,
    }
    template = "visualisation/_run_table.html" if request.htmx else "visualisation/choose.html"
    return render(request, template, context, status=refused.status if refused else 200)
