"""What requests for a user's own program have in common, whatever kind of job it becomes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import Max

from accounts.models import User
from aiplatform.lib import sealed
from aiplatform.lib.errors import Invalid, Refusals
from aiplatform.lib.titles import TITLE
from datasets.models import DatasetVersion
from training.programs import run_inputs, variables
from training.programs.models import CodeSnapshot
from workers.core.models import Node, VirtualCluster
from workers.images.models import Image
from workers.images.services import uses
from workers.images.store import compatibility
from workers.jobs import resource_request, submission
from workers.jobs.following import NOTHING, Following
from workers.jobs.resource_request import Resources

DEFAULT_CPUS = 4.0
#: Fields of a request that the queue takes as they are.
PLACES = (
    "nodes", "gpus_per_node", "device_kind", "device_model", "share", "card_memory_mib", "memory_mib",
    "max_disk_bytes", "priority", "preemptible", "root_inside", "max_runtime",
)  # fmt: skip
#: Fields of a request that are columns of its job.
OF_JOB = (
    "cluster", "nodes", "gpus_per_node", "device_kind", "device_model", "cpus", "share", "memory_mib",
    "max_disk_bytes", "priority", "preemptible", "root_inside", "max_runtime",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ProgramRequest:
    """The fields that all requests for a user's program have, with their defaults.

    Args:
        name: "" derives one.
        code: None: no code.
        image: where its programs come from; None: the platform's own.
        datasets: versions that it reads, annotated or not.
        variables, secrets: environment; secrets are stored encrypted and masked in the log. A secret without a value
            is the user's stored secret of that name.
        cluster: None takes the user's current one.
        gpus_per_node: 0 runs on CPU cores.
        cpus: cores per node; None chooses.
        nodes, share, card_memory_mib, memory_mib, priority, preemptible, max_runtime: see `Resources`.
    """

    name: str = ""
    code: CodeSnapshot | None = None
    image: Image | None = None
    datasets: Sequence[DatasetVersion] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict)
    cluster: VirtualCluster | None = None
    nodes: int = 1
    gpus_per_node: int | None = 0
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
    following: Following = NOTHING

    def resources(self, user: User) -> Resources:
        """What the queue has to know.

        Raises:
            NotAMember: the user does not belong to the cluster, or to none.
        """
        fields: Any = {name: getattr(self, name) for name in PLACES}
        resources: Resources = fields | {
            "cluster": resource_request.cluster_for(user, self.cluster),
            "cpus": self.cpus if self.cpus is not None else default_cpus(),
            "needs": compatibility.needs_of(self.image).as_row(),
        }
        return resources

    def columns(self, user: User) -> dict[str, Any]:
        """The columns of `ProgramRow`, with the stored secrets that the request names."""
        return {
            "code": self.code,
            "variables": dict(self.variables),
            "secrets": sealed.seal(variables.with_stored(user, self.secrets)),
            "secret_names": sorted(self.secrets),
        }


def check(
    user: User, kind: str, request: ProgramRequest, parts: Callable[..., object], *checks: Callable[[], object]
) -> Resources:
    """Refuse at once what submitting the request would refuse, and write nothing; return what the queue has to know.

    Args:
        parts: refuses fields regardless of the others; called with the fields that it has parameters for.
        checks: refuse the rest of what is specific to the kind.

    Raises:
        Invalid: a value is wrong, or the image is not for this user.
        VersionNotReady: a dataset is not whole, or not for this user.
        NotAMember: the user does not belong to the cluster.
        NotAllowed: urgent, without the right to it.
        NeverFits, OverLimit: the nodes, or a limit, never give what is requested.
    """
    refusals, resources = Refusals(), Resources()
    with refusals:
        parts(**{name: getattr(request, name) for name in inspect.signature(parts).parameters})
    with refusals:
        variables.check_stored(user, request.secrets)
    for refuse in checks:
        with refusals:
            refuse()
    with refusals:
        run_inputs.check(user, request.datasets)
    with refusals:
        resources = request.resources(user)
        submission.check(user, kind, request.following, **resources)
    refusals.end()
    return resources


def as_request(program: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request that would run a program again, but for its secrets: `own`, and what all programs have."""
    job = program.job
    return {
        "name": job.name,
        **own,
        "code": program.code,
        "image": uses.image_of(job),
        "datasets": [row.version for row in program.inputs.select_related("version__dataset") if row.version],
        "variables": program.variables,
        **{name: getattr(job, name) for name in OF_JOB},
    }


def code_spec(code: CodeSnapshot | None) -> dict[str, Any]:
    """The part of a job's spec that names its code."""
    return {"code": {"id": code.pk, "origin": code.origin, "files": code.files}} if code else {}


def check_name(name: str) -> None:
    """Refuse odd characters; "" is a name to be made."""
    if name and not re.fullmatch(TITLE.regex, name):
        raise Invalid(str(TITLE.message), field="name")


def check_environment(plain: Mapping[str, str] | None, secrets: Mapping[str, str] | None) -> None:
    """Refuse at once invalid variables and secrets, and secrets that are variables as well."""
    plain, secrets, refusals = plain or {}, secrets or {}, Refusals()
    with refusals:
        variables.check(plain, field="variables")
    with refusals:
        variables.check(secrets, field="secrets")
    with refusals:
        variables.check_secrets(secrets, plain)
    refusals.end()


def default_cpus() -> float:
    """Return the default CPU cores of a job: up to four, never more than the largest node has."""
    largest = Node.objects.aggregate(most=Max("cpu_cores"))["most"]
    return min(DEFAULT_CPUS, float(largest or 1))
