"""Pages of the usage of a service, and of trials of another version."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import pgettext
from django.views.decorators.http import require_POST

from accounts.access.permissions import Action
from accounts.http import SignedInRequest
from aiplatform.lib.pages import errors_as_messages, errors_shown_on, needs
from inference.serving import tabs
from inference.serving.models import Service, ServiceTrial
from inference.serving.traffic import statistics, trials
from inference.serving.traffic.forms import TrialForm, TrialPartForm


@needs(Action.SERVICES_MANAGE)
def trial_new(request: SignedInRequest, pk: int) -> HttpResponse:
    """Try another version on a part of the requests."""
    service = _own(request, pk)
    form = TrialForm(request.POST or None, service=service)
    if form.is_valid():
        with errors_shown_on(form):
            values = form.cleaned_data
            trials.start(
                service=service, version=values["model_version"], mode=values["mode"], percent=values["percent"],
                by=request.user,
            )  # fmt: skip
            return redirect("inference:service-detail", pk)
    context = {"form": form, "service": service}
    return render(request, "inference/service_trial.html", context, status=422 if form.errors else 200)


@require_POST
@needs(Action.SERVICES_MANAGE)
def trial_part(request: SignedInRequest, pk: int) -> HttpResponse:
    """Give it more or fewer of the requests."""
    service, form = _own(request, pk), TrialPartForm(request.POST)
    if form.is_valid():
        with errors_as_messages(request):
            trials.change_part(service=service, percent=form.cleaned_data["percent"], by=request.user)
    return redirect("inference:service-detail", pk)


@require_POST
@needs(Action.SERVICES_MANAGE)
def trial_promote(request: SignedInRequest, pk: int) -> HttpResponse:
    """Let the tried version answer everything."""
    service = _own(request, pk)
    with errors_as_messages(request):
        trials.promote(service=service, by=request.user)
    return redirect("inference:service-detail", pk)


@require_POST
@needs(Action.SERVICES_MANAGE)
def trial_roll_back(request: SignedInRequest, pk: int) -> HttpResponse:
    """Go back to the version that the service has."""
    service = _own(request, pk)
    with errors_as_messages(request):
        trials.roll_back(service=service, by=request.user)
    return redirect("inference:service-detail", pk)


@needs(Action.SERVICES_VIEW)
def service_usage(request: SignedInRequest, pk: int) -> HttpResponse:
    """Requests, failures and times of a service; `?span=` day, week or month."""
    service: Service = get_object_or_404(Service.objects.visible_to(request.user).for_list(), pk=pk)
    span = request.GET.get("span", "day")
    span = span if span in statistics.SPANS else "day"
    own = Service.objects.editable_by(request.user).filter(pk=pk).exists()
    rows = list(statistics.since(service, span).select_related("user", "key", "version__model"))
    shown = rows if own else [row for row in rows if row.user_id == request.user.pk]
    context = {
        **tabs.context(service, request.user, "service-usage", is_own=own),
        "span": span,
        "whole": statistics.summarize(shown),
        "charts": _charts(statistics.series(shown, span), span),
        "versions": statistics.by(shown, "version"),
        "callers": statistics.by((row for row in shown if not row.key_id), "user") if own else [],
        "keys": statistics.by((row for row in shown if row.key_id), "key") if own else [],
        "trials": service.trials.exclude(outcome="")[:20],
    }
    return render(request, "inference/service_usage.html", context)


def _charts(series: dict[str, list[Any]], span: str) -> list[dict[str, Any]]:
    """Return the charts of usage as `usage.js` draws them."""
    counts = [("requests", pgettext("endpoint", "Requests"), "--chart-1"), ("failed", _("Failed"), "--fail"),
              ("refused", _("Rejected"), "--wait")]  # fmt: skip
    times = [("p50", _("Median"), "--chart-1"), ("p95", _("p95"), "--chart-2")]
    titles = {"day": _("Requests per hour"), "week": _("Requests per 6 hours"), "month": _("Requests per day")}
    return [
        {"title": titles[span], "unit": "", "at": series["at"], "stepped": True, "lines": [
            {"name": label, "color": color, "values": series[name], "last": sum(series[name])}
            for name, label, color in counts if name == "requests" or any(series[name])
        ]},
        {"title": _("Latency"), "unit": "ms", "at": series["at"], "stepped": False, "lines": [
            {"name": label, "color": color, "values": series[name]} for name, label, color in times
        ]},
    ]  # fmt: skip


def trial_context(service: Service) -> dict[str, Any]:
    """What the head of a service's page says of a trial."""
    trial = trials.current(service)
    halted = service.trials.first() if trial is None else None
    if halted is not None and halted.outcome != ServiceTrial.Outcome.HALTED:
        halted = None
    if trial is None:
        return {"trial": None, "halted": halted}
    trials.advance(trial)
    if trial.outcome:
        return {"trial": None, "halted": trial}
    tried, beside = statistics.of_trial(trial)
    return {"trial": trial, "tried": tried, "beside": beside, "needed": max(0, trials.MIN_REQUESTS - tried.requests)}


def _own(request: SignedInRequest, pk: int) -> Service:
    rows = Service.objects.editable_by(request.user).select_related("job", "owner", "model_version__model")
    service: Service = get_object_or_404(rows, pk=pk)
    return service
