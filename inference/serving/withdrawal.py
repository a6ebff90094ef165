"""Services whose model is deleted or made private, when another user owns the model.

A service holds the model of its own owner; the model of another user it only uses. No user can keep another's model
alive, so such a service is stopped, stays as a row that says why, and starts again where the model comes back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from aiplatform.lib import wording
from aiplatform.lib.errors import DomainError
from aiplatform.lib.wording import Message
from inference.registry import withdrawals
from inference.registry.models import Model, ModelVersion
from inference.serving import host_assignment, replica_closing
from inference.serving.models import Service
from workers.core.states import Reason
from workers.jobs import actions as queue


class ModelWithdrawn(DomainError, code="model_withdrawn"): ...


def usable_version(service: Service, number: int | None = None) -> ModelVersion:
    """Return the version that a service may use; its owner's permissions are checked again.

    Args:
        number: the id of a version that it is to answer with; None: the one that it answers with.

    Raises:
        ModelWithdrawn: it was deleted, or is not shared with the service's owner any more.
    """
    number = service.model_version_id if number is None else number
    if number is None:
        raise ModelWithdrawn(wording.message("service.model_deleted"))
    usable = ModelVersion.objects.usable_by(service.owner).select_related("model")
    version: ModelVersion | None = usable.filter(pk=number).first()
    if version is None:
        raise ModelWithdrawn(wording.message("service.model_not_shared"))
    return version


def others_count(model: Model) -> int:
    """Count services of other users that use a model; only the number, as some may be private."""
    count: int = Service.objects.of_others(model).count()
    return count


def why_not(service: Service) -> Message:
    """Why a service may not answer with its model; empty where it may."""
    try:
        usable_version(service)
    except ModelWithdrawn as refusal:
        return wording.of_error(refusal)
    return Message()


def stop_unshared(services: Iterable[Service]) -> None:
    """Stop services whose owner may no longer use the model; calls to those that cannot be stopped are refused."""
    for service in services:
        if message := why_not(service):
            _stop(service, message)


def disable(services: Iterable[Service]) -> None:
    """Take the model, which is about to be deleted, from services and stop them."""
    for service in services:
        _stop(service, wording.message("service.model_deleted"))
        service.model_label = str(service.model_version)
        service.model_version = None
        service.save(update_fields=["model_label", "model_version", "updated_at"])


def _stop(service: Service, message: Message) -> None:
    shared = host_assignment.leave(service)
    if service.job is not None and service.is_up:
        with contextlib.suppress(DomainError):  # it is stopping by itself
            queue.stop(service.job, reason=Reason.OPERATOR, message=message)
    tried = [trial.job for trial in service.trials.filter(outcome="").select_related("job")]
    for job in (service.next_job, service.old_job, *tried, *replica_closing.close_of(service.pk), shared):
        if job is not None and not job.is_final and host_assignment.may_end(job):
            with contextlib.suppress(DomainError):
                queue.stop(job, reason=Reason.OPERATOR, message=message)


USE = withdrawals.Use(
    name="service",
    count_others=others_count,
    stop_unshared=lambda model: stop_unshared(Service.objects.of_others(model).for_list()),
    disable=lambda model, version: disable(_of_others(model, version)),
)


def _of_others(model: Model, version: ModelVersion | None) -> Any:
    rows = Service.objects.of_others(model).for_list()
    return rows if version is None else rows.filter(model_version=version)
