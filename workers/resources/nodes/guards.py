"""Guards: what keeps a machine from its jobs, and what of it is missing there, in words for operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

    from workers.core.models import Node


@dataclass(frozen=True)
class Guard:
    """One guard: the sentence for an active one, and the one where it is missing."""

    stands: StrOrPromise
    missing: StrOrPromise


#: by the key in `Node.facts["guards"]`, the most important first
GUARDS = {
    "user": Guard(
        _("Jobs run under an ordinary user of each person's."),
        _("Jobs run under the platform's own user: a job that gets out of its sandbox is the platform."),
    ),
    "rights": Guard(
        _("Jobs have no capability and gain none: no set-uid program gives them any."),
        _("Jobs run as root, though without capabilities: files of root are theirs to write."),
    ),
    "calls": Guard(
        _("A filter refuses system calls that no job needs."),
        _("No filter of system calls: this kernel has none, or its processor is unknown."),
    ),
    "files": Guard(
        _("Jobs open only the files they were given."),
        _("Jobs open every file that their user may open."),
    ),
    "processes": Guard(
        _("Jobs see no processes but their own, and nothing outlives them."),
        _("Jobs see the other processes of this machine."),
    ),
    "sockets": Guard(
        _("Jobs reach no abstract sockets and send no signals outside."),
        _("Jobs reach the abstract sockets of this machine: that is closed from Linux 6.12 and tier 1 on."),
    ),
    "limits": Guard(
        _("The kernel holds memory, processes and cores of jobs (cgroups)."),
        _("The platform watches the memory of jobs, the kernel does not hold it: that takes root and cgroups."),
    ),
}  # fmt: skip


def missing(node: Node) -> list[StrOrPromise]:
    """Sentences for missing guards of a node, as its agent last reported them."""
    guards = node.facts.get("guards") or {}
    return [guard.missing for key, guard in GUARDS.items() if guards.get(key) is False]
