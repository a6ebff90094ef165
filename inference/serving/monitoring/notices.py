"""Notify the owner of a service when its inputs no longer resemble the training data."""

from __future__ import annotations

from django.core.cache import cache
from django.urls import reverse
from django.utils.timezone import now
from django.utils.translation import gettext_lazy as _

from accounts.services.notify import Kind, notify
from aiplatform.lib import wording
from aiplatform.lib.wording import Message
from inference.registry import drift, sweeps
from inference.registry.baseline_models import ModelBaseline
from inference.serving.models import Service
from inference.serving.monitoring import results
from inference.serving.monitoring.results import Comparison

KIND = Kind("drift", _("Data drift at an endpoint of mine"), "chart")
EVERY_S = 900


def sweep() -> None:
    """Check each service whose version has a baseline, four times an hour; notify of a change once a week."""
    with_baseline = ModelBaseline.objects.values("version")
    rows = Service.objects.filter(model_version__in=with_baseline, asleep_at=None).exclude(job=None)
    for service in rows.select_related("owner", "model_version__model"):
        with sweeps.kept_apart(f"service={service.pk} drift is not looked for"):
            if cache.add(f"drift:{service.pk}", 1, EVERY_S):
                check_drift(service)


def check_drift(service: Service) -> bool:
    """Notify the owner if the last day differs from the baseline; returns whether it does."""
    comparison = results.compare(service, "day")
    message = _drift_message(comparison)
    if not message:
        return False
    week = now().strftime("%G-%V")
    notify(
        service.owner,
        KIND.name,
        title=wording.message("service.drifted", service=service.name),
        text=message,
        url=reverse("inference:service-monitoring", args=[service.pk]),
        key=f"drift-{service.pk}-{service.model_version_id}-{week}",
    )
    return True


def _drift_message(comparison: Comparison) -> Message:
    """Return the message for a comparison; empty if there is no drift."""
    worst, looks = comparison.worst, comparison.looks
    if worst is not None and worst.value is not None and worst.value >= drift.OTHER:
        value = f"{worst.value:.2f}"
        return wording.message("service.drifted_by", what=worst.name, images=comparison.images, value=value)
    if looks.verdict == "other":
        apart, allowed = f"{looks.apart:.2f}", f"{looks.allowed:.2f}"
        what = looks.shares[0][0]
        return wording.message(
            "service.looks_drifted", images=comparison.images, apart=apart, allowed=allowed, what=what
        )
    return Message()
