"""The tabs of an endpoint, on each of its pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from inference.serving.models import Service


@dataclass(frozen=True)
class ServiceTab:
    """A page of an endpoint.

    Attributes:
        name: of its address.
        managed: shown only to users who may change the endpoint.
    """

    name: str
    label: Any
    managed: bool = True


TABS = (
    ServiceTab("service-detail", _("Overview"), managed=False),
    ServiceTab("service-usage", _("Usage"), managed=False),
    ServiceTab("service-monitoring", _("Monitoring")),
    ServiceTab("service-samples", _("Feedback")),
    ServiceTab("service-keys", pgettext_lazy("endpoint", "API keys")),
)


def context(service: Service, user: User, current: str, *, is_own: bool = True) -> dict[str, Any]:
    """Return what `inference/service_base.html` needs.

    Args:
        current: name of the tab that is open.
        is_own: whether the user may change the endpoint.
    """
    manages = is_own and user.can(Action.SERVICES_MANAGE)
    return {
        "service": service,
        "tabs": [tab for tab in TABS if manages or not tab.managed],
        "tab": current,
        "own": is_own,
        "samples_waiting": service.samples.filter(dataset=None).count() if manages else 0,
    }
