"""Page of what a service is shown, against what its model learned from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, needs
from inference.registry import baselines
from inference.registry.drift import MIN_IMAGES, Drift, Looks
from inference.serving import tabs
from inference.serving.models import Service
from inference.serving.monitoring import distributions, results
from inference.serving.monitoring.labels import COMPARED, LOOKS, VERDICTS, WHOLE_IMAGES
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
        **tabs.context(service, request.user, "service-monitoring"),
        "span": span,
        "found": comparison,
        "status": _status(comparison),
        "rows": [_row(drift) for drift in _by_drift(comparison.drifts)] if comparison.images else [],
        "on_its_way": baselines.on_its_way(version) if version else None,
        "may_learn": version is not None and baselines.data_of(version, request.user) is not None,
        "looks": _looks(comparison.looks),
        "enough": MIN_IMAGES,
    }
    return render(request, "inference/service_monitoring.html", context)


def _by_drift(drifts: Sequence[Drift]) -> list[Drift]:
    """Return the comparisons with the largest drift first; those without a value keep their order."""
    return sorted(drifts, key=lambda drift: -(drift.value or 0.0))


def _status(comparison: results.Comparison) -> dict[str, Any]:
    """Return the one state of monitoring: a code, the hue of its banner, and what drifted."""
    if not comparison.images:
        return {"code": "idle", "hue": "info"}
    if not comparison.against:
        return {"code": "no_reference", "hue": "info"}
    if min(comparison.images, comparison.before) < MIN_IMAGES:
        return {"code": "collecting", "hue": "info"}
    verdicts = {COMPARED[drift.name]: drift.verdict for drift in _by_drift(comparison.drifts)}
    verdicts |= {WHOLE_IMAGES: comparison.looks.verdict}
    for verdict, hue in (("other", "fail"), ("moved", "warn")):
        if names := [str(name) for name in verdicts if verdicts[name] == verdict]:
            return {"code": verdict, "hue": hue, "names": names}
    return {"code": "steady", "hue": "ok"}


def _looks(looks: Looks) -> dict[str, Any]:
    """Return the context of the images as a whole: the largest parts of the difference, in percent."""
    reasons = [{"word": LOOKS[name], "percent": round(100 * share)} for name, share in looks.shares[:MAX_REASONS]]
    return {"found": looks, "verdict": VERDICTS[looks.verdict], "hue": HUES[looks.verdict], "most": reasons}


def _row(drift: Drift) -> dict[str, Any]:
    """Return the context of a comparison: a chart, or the shares of classes in percent."""
    pairs = list(zip(drift.before, drift.now, strict=True))[:MAX_CLASSES]
    return {
        "name": drift.name,
        "word": COMPARED[drift.name],
        "value": drift.value,
        "verdict": VERDICTS[drift.verdict],
        "hue": HUES[drift.verdict],
        "chart": None if drift.name == "classes" else distributions.chart(drift),
        "shares": [
            {"name": name, "before": f"{100 * b:.1f}", "now": f"{100 * n:.1f}"}
            for name, (b, n) in zip(drift.bins, pairs, strict=False)
        ],
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
    rows = Service.objects.editable_by(request.user).select_related("job", "owner", "model_version__model")
    service: Service = get_object_or_404(rows, pk=pk)
    return service
