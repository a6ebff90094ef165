"""The job kind `service_host`: a process that several services share."""

from __future__ import annotations

import sys

from django.utils.translation import gettext_lazy

from accounts.permissions import Action
from inference.kind import DEVICE_KINDS, copy_code
from inference.monitoring import collecting
from inference.services import serving
from inference.sharing import filling, hosts, parting
from inference.sharing.places import KIND
from workers.kinds import Capabilities, Fact, JobKind, Launch
from workers.models import Attempt, Job
from workers.runs import RunDir


class HostKind(JobKind):
    """`python -m inference.server --host` behind the proxy."""

    name = KIND
    device_kinds = DEVICE_KINDS
    label = gettext_lazy("Shared services")
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
        filling.fill(job)
        copy_code(run, "server", "task_kinds")
        folder = hosts.folder(job.pk)
        return Launch(
            argv=[sys.executable, "-m", "inference.server", "--host", str(folder)],
            env={"AIP_SERVICE_KEY": serving.key_for(job.pk, attempt.number)},
            read_only=[folder],
            ports=1,
        )

    def ended(self, job: Job, attempt: Attempt) -> None:
        collecting.keep_last_of_host(job, attempt)
        parting.look_after_crash(job, attempt)
        filling.fill(job)

    def facts(self, job: Job) -> list[Fact]:
        names = sorted(hosts.residents(job).values_list("name", flat=True))
        return [Fact(gettext_lazy("Services"), ", ".join(names))] if names else []
