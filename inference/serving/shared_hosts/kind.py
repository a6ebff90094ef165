"""The job kind `service_host`: a process that several services share."""

from __future__ import annotations

import sys

from django.utils.translation import gettext_lazy

from accounts.access.permissions import Action
from inference.registry.run_code import DEVICE_KINDS, copy_code
from inference.serving import endpoints, host_assignment
from inference.serving.addresses import KIND
from inference.serving.monitoring import collection
from inference.serving.shared_hosts import folders, separation
from workers.core.kinds import Capabilities, Fact, JobKind, Launch
from workers.core.models import Attempt, Job
from workers.core.runs import RunDir


class HostKind(JobKind):
    """`python -m inference.serving.server --host` behind the proxy."""

    name = KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Shared endpoints")
    icon = "inference"
    order = 71
    step = False
    view_action = Action.SERVICES_VIEW
    submit_action = Action.SERVICES_MANAGE
    offered = False
    idle_guard = False
    answers_requests = True
    evictable = False
    can = Capabilities(pause=False, finish=False)

    def prepare(self, job: Job, attempt: Attempt, run: RunDir) -> Launch:
        folders.sync(job)
        copy_code(run, "kit", "serving/server")
        folder = host_assignment.folder(job.pk)
        return Launch(
            argv=[sys.executable, "-m", "inference.serving.server", "--host", str(folder)],
            env={"AIP_SERVICE_KEY": endpoints.key_for(job.pk, attempt.number)},
            read_only=[folder],
            ports=1,
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        collection.store_last_host_counts(job, attempt)
        separation.look_after_crash(job, attempt)
        folders.sync(job)

    def facts(self, job: Job) -> list[Fact]:
        names = sorted(host_assignment.residents(job).values_list("name", flat=True))
        return [Fact(gettext_lazy("Endpoints"), ", ".join(names))] if names else []
