"""Page of what a service is shown, against what its model learned from."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from inference.registry import baselines
from inference.registry.drift import MIN_IMAGES, Drift, Looks
from inference.serving.models import Service
from inference.serving.monitoring import results
from inference.serving.monitoring.labels import COMPARED, LOOKS, VERDICTS
from inference.serving.traffic.statistics import SPANS

HUES = {"steady": "run", "moved": "wait", "other": "fail", "unknown": "end"}
MAX_CLASSES = 30
MAX_REASONS = 3


@needs(Action.SERVICES_MANAGE)
def monitoring(request: SignedInRequest, pk: int) -> HttpResponse:
    """Pictures and answers of a day, week or month (`?span=`), for who may change the service."""
    service = _own(request, pk)
    span = request.GET.get("span", "day")
    span = span if span in SPANS else "day"
    comparison, version = results.compare(service, span), service.model_version
    context = {
        "service": service,
        "span": span,
        "found": comparison,
        "rows": [_row(drift) for drift in comparison.drifts],
        "on_its_way": baselines.on_its_way(version) if version else None,
        "may_learn": version is not None and baselines.data_of(version, request.user) is not None,
        "looks": _looks(comparison.looks),
        "enough": MIN_IMAGES,
    }
    return render(request, "inference/service_monitoring.html", context)


def _looks(looks: Looks) -> dict[str, Any]:
    """Return the context of the images as a whole: the largest parts of the difference, in percent."""
    reasons = [{"word": LOOKS[name], "percent": round(100 * share)} for name, share in looks.shares[:MAX_REASONS]]
    return {"found": looks, "verdict": VERDICTS[looks.verdict], "hue": HUES[looks.verdict], "most": reasons}


def _row(drift: Drift) -> dict[str, Any]:
    """Return the context of a comparison: bars of both, in percent of the highest."""
    highest = max([*drift.before, *drift.now, 0.0001])
    pairs = list(zip(drift.before, drift.now, strict=True))[:MAX_CLASSES]
    bars = [{"before": round(100 * b / highest, 1), "now": round(100 * n / highest, 1)} for b, n in pairs]
    shares = [
        {"name": name, "before": f"{100 * b:.1f}", "now": f"{100 * n:.1f}"}
        for name, (b, n) in zip(drift.bins, pairs, strict=False)
    ]
    return {
        "name": drift.name,
        "word": COMPARED[drift.name],
        "value": drift.value,
        "verdict": VERDICTS[drift.verdict],
        "hue": HUES[drift.verdict],
        "bars": bars,
        "shares": shares,
    }


@require_POST
@needs(Action.SERVICES_MANAGE)
def baseline(request: SignedInRequest, pk: int) -> HttpResponse:
    """Queue the job that counts the training images."""
    service = _own(request, pk)
    with errors_as_messages(request):
        if service.model_version is not None:
            baselines.learn(user=request.user, version=service.model_version)
    return redirect("inference:service-monitoring", pk)


def _own(request: SignedInRequest, pk: int) -> Service:
    rows = Service.objects.editable_by(request.user).select_related("owner", "model_version__model")
    service: Service = get_object_or_404(rows, pk=pk)
    return service
