"""A service without its model: what happens to a service of another person when a model goes, or is made private.

A service holds the model of its own owner; the model of somebody else it only uses. Nobody can keep another's model
alive, so such a service is stopped, stays as a row that says why, and starts again where the model comes back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import ClassVar

from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError
from inference.models import Model, ModelVersion, Service
from workers.jobs import actions as queue
from workers.states import Reason


class ModelWithdrawn(DomainError):
    code: ClassVar[str] = "model_withdrawn"


def usable_version(service: Service) -> ModelVersion:
    """The version a service may answer with, asked anew: what its owner may use can change while it stands.

    Raises:
        ModelWithdrawn: it was deleted, or is not shared with the service's owner any more.
    """
    if service.model_version_id is None:
        raise ModelWithdrawn(_("The model of this service was deleted."))
    seen = ModelVersion.objects.usable_by(service.owner).select_related("model")
    found: ModelVersion | None = seen.filter(pk=service.model_version_id).first()
    if found is None:
        raise ModelWithdrawn(_("The model of this service is no longer shared with its owner."))
    return found


def others_count(model: Model) -> int:
    """How many services of other people answer with a model; only the number, for some may be private."""
    count: int = Service.objects.of_others(model).count()
    return count


def why_not(service: Service) -> str:
    """Why a service may not answer with its model; empty where it may."""
    try:
        usable_version(service)
    except ModelWithdrawn as refusal:
        return refusal.message
    return ""


def stop_unshared(services: Iterable[Service]) -> None:
    """Stop those whose owner may no longer use the model; where one cannot be stopped now, the proxy refuses calls."""
    for service in services:
        if sentence := why_not(service):
            _stop(service, sentence)


def disable(services: Iterable[Service]) -> None:
    """Take their model away, which is about to be deleted, and stop them."""
    for service in services:
        _stop(service, _("The model of this service was deleted."))
        service.model_label = str(service.model_version)
        service.model_version = None
        service.save(update_fields=["model_label", "model_version", "updated_at"])


def _stop(service: Service, sentence: str) -> None:
    if service.job is not None and service.is_up:
        with contextlib.suppress(DomainError):  # it is stopping by itself
            queue.stop(service.job, reason=Reason.OPERATOR, sentence=sentence)
