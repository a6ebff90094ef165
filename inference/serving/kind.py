"""The job kind `service`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from accounts.models import User
from aiplatform.lib import wording
from aiplatform.lib.search import Hit
from inference.registry import retention
from inference.registry.models import Model, ModelVersion
from inference.registry.run_code import DEVICE_KINDS, Vanished, copy_code
from inference.serving import endpoints, launch, search, withdrawal
from inference.serving.models import Service, ServiceTrial
from inference.serving.monitoring import collection
from workers.core.kinds import Capabilities, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir


class ServiceKind(JobKind):
    """`python -m inference.serving.server` behind the proxy."""

    name = endpoints.KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Endpoint")
    plural = gettext_lazy("Endpoints")
    step_label = gettext_lazy("Endpoints")
    hint = gettext_lazy("Serve predictions at an address")
    icon = "inference"
    order = 70
    section = "endpoints"
    list_page = "inference:service-list"
    start_page = "inference:service-new"
    start_word = gettext_lazy("Deploy a model")
    view_action = Action.SERVICES_VIEW
    submit_action = Action.SERVICES_MANAGE
    idle_guard = False  # an idle service is no waste: it holds its GPU in order to answer
    answers_requests = True
    evictable = False
    can = Capabilities(pause=False, finish=False)  # started again by a new job, see `endpoints.start`

    def startable(self, user: User) -> bool:
        """Whether a model is there to serve."""
        return Model.objects.visible_to(user).exists()

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        service = Service.objects.select_related("owner").filter(pk=job.spec["service"]).first()
        if service is None:
            raise Vanished(wording.message("service.deleted"))
        # what it is to answer with next, or tries, is another than what it answers with
        version_id = job.spec["model_version"] if job.pk != service.job_id else None
        version = withdrawal.usable_version(service, version_id)
        copy_code(run, "kit", "serving/server")
        return Launch(
            argv=[sys.executable, "-m", "inference.serving.server"],
            env={
                "AIP_MODEL_DIR": str(version.path),
                "AIP_SERVICE_KEY": endpoints.key_for(job.pk, attempt.number),
                **launch.environment(service, version, job.spec),
            },
            read_only=[version.path],
            ports=1,
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        collection.store_last_counts(job, attempt)

    def url(self, job: Job) -> str:
        service = Service.objects.filter(pk=job.spec.get("service")).first()
        return reverse("inference:service-detail", args=[service.pk]) if service else ""

    def find(self, user: User, query: str, limit: int) -> Iterator[Hit]:
        return search.services(user, query, limit)


def _of_owner(version: ModelVersion) -> list[tuple[object, object]]:
    """Return services of the owner of a model that answer with a version, or change to it."""
    owner = version.model.owner
    rows = Service.objects.filter(Q(model_version=version) | Q(next_version=version), owner=owner)
    return [(service.name, owner) for service in rows]


def _trials_of_owner(version: ModelVersion) -> list[tuple[object, object]]:
    """Return services of the owner of a model that try a version."""
    owner = version.model.owner
    rows = ServiceTrial.objects.filter(version=version, outcome="", service__owner=owner).select_related("service")
    return [(trial.service.name, owner) for trial in rows]


HOLDERS = (
    retention.Holder("service", gettext_lazy("endpoint %(name)s of %(owner)s"), _of_owner),
    retention.Holder("service trial", gettext_lazy("endpoint %(name)s of %(owner)s"), _trials_of_owner),
)
