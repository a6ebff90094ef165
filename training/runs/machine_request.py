"""What a request for one's own program asks of the machines; commands and environments share it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from accounts.models import User
from training.runs import drafts
from workers.core.models import VirtualCluster
from workers.jobs import resource_request
from workers.jobs.resource_request import Resources


@dataclass(frozen=True, kw_only=True)
class MachineRequest:
    """The fields of `Resources` that people fill in, with their defaults; by keyword alone.

    Args:
        cluster: None takes the person's current one.
        gpus_per_node: 0 runs on processor cores.
        cpus: cores per node; None chooses.
    """

    cluster: VirtualCluster | None = None
    gpus_per_node: int = 0
    device_kind: str = "gpu"
    device_model: str = ""
    cpus: float | None = None
    share: int = 8
    card_memory_mib: int = 0
    memory_mib: int = 0
    max_disk_bytes: int | None = None
    priority: int = 0
    preemptible: bool = False
    root_inside: bool = False
    max_runtime: timedelta | None = None

    def resources(self, user: User) -> Resources:
        """What the queue has to know.

        Raises:
            NotAMember: the person does not belong to the cluster, or to none.
        """
        return {
            "cluster": resource_request.cluster_for(user, self.cluster),
            "gpus_per_node": self.gpus_per_node,
            "device_kind": self.device_kind,
            "device_model": self.device_model,
            "share": self.share,
            "card_memory_mib": self.card_memory_mib,
            "cpus": self.cpus if self.cpus is not None else drafts.default_cpus(),
            "memory_mib": self.memory_mib,
            "max_disk_bytes": self.max_disk_bytes,
            "priority": self.priority,
            "preemptible": self.preemptible,
            "root_inside": self.root_inside,
            "max_runtime": self.max_runtime,
        }
