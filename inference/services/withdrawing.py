"""Services whose model is deleted or made private, when another person owns the model.

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
    """Return the version a service may use, checked anew: its owner's rights may have changed.

    Raises:
        ModelWithdrawn: it was deleted, or is not shared with the service's owner any more.
    """
    if service.model_version_id is None:
        raise ModelWithdrawn(_("The model of this service was deleted."))
    usable = ModelVersion.objects.usable_by(service.owner).select_related("model")
    version: ModelVersion | None = usable.filter(pk=service.model_version_id).first()
    if version is None:
        raise ModelWithdrawn(_("The model of this service is no longer shared with its owner."))
    return version


def others_count(model: Model) -> int:
    """Count services of other people that use a model; only the number, as some may be private."""
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
    """Stop services whose owner may no longer use the model; calls to those that cannot be stopped are refused."""
    for service in services:
        if sentence := why_not(service):
            _stop(service, sentence)


def disable(services: Iterable[Service]) -> None:
    """Take the model, which is about to be deleted, from services and stop them."""
    for service in services:
        _stop(service, _("The model of this service was deleted."))
        service.model_label = str(service.model_version)
        service.model_version = None
        service.save(update_fields=["model_label", "model_version", "updated_at"])


def _stop(service: Service, sentence: str) -> None:
    if service.job is not None and service.is_up:
        with contextlib.suppress(DomainError):  # it is stopping by itself
            queue.stop(service.job, reason=Reason.OPERATOR, sentence=sentence)
