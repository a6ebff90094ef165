"""The page on which runs stand beside each other."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.http import SignedInRequest
from accounts.permissions import Action
from aiplatform.lib import ids
from aiplatform.lib.errors import DomainError
from aiplatform.lib.pages import needs
from training.experiments import comparing


@needs(Action.TRAINING_VIEW)
@require_safe
def compare(request: SignedInRequest) -> HttpResponse:
    """Compare the runs of `?run=` and the trainings of `?training=`, given again for each."""
    numbers, trainings = (
        [number for text in request.GET.getlist(name) if (number := ids.number(text)) is not None]
        for name in ("run", "training")
    )
    try:
        runs = comparing.chosen(request.user, numbers, trainings=trainings)
    except DomainError as refused:
        status = refused.status if numbers or trainings else 200  # nothing is chosen yet
        return render(request, "training/compare.html", {"refused": refused.message}, status=status)
    figures = comparing.figures(runs)
    keys = comparing.keys(figures)
    context = {
        "runs": runs,
        "keys": keys,
        "rows": comparing.rows(runs),
        "figures": [(key, [own.get(key) for own in figures]) for key in keys if not key.startswith("system/")],
    }
    return render(request, "training/compare.html", context)
