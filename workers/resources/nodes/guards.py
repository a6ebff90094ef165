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
        _("Jobs run under a separate unprivileged user per user."),
        _(
            "Jobs run under the user of the platform: a job that escapes its sandbox has full control of the "
            "platform."
        ),
    ),
    "rights": Guard(
        _("Jobs have no capabilities and cannot gain any through set-uid programs."),
        _("Jobs run as root, but without capabilities: they can write files owned by root."),
    ),
    "calls": Guard(
        _("A seccomp filter blocks system calls that jobs do not need."),
        _("No system call filter: the kernel does not support it, or the CPU is unknown."),
    ),
    "files": Guard(
        _("Jobs can open only the files assigned to them."),
        _("Jobs can open every file their user can open."),
    ),
    "processes": Guard(
        _("Jobs can see only their own processes, and no process outlives the job."),
        _("Jobs can see the other processes of this node."),
    ),
    "sockets": Guard(
        _("Jobs cannot reach abstract sockets and cannot send signals outside."),
        _("Jobs can reach the abstract sockets of this node: isolation requires Linux 6.12 and tier 1."),
    ),
    "limits": Guard(
        _("The kernel limits memory, processes and cores of jobs (cgroups)."),
        _(
            "The platform monitors the memory of jobs, but the kernel does not limit it: this requires root "
            "and cgroups."
        ),
    ),
}  # fmt: skip


def missing(node: Node) -> list[StrOrPromise]:
    """Sentences for missing guards of a node, as its agent last reported them."""
    guards = node.facts.get("guards") or {}
    return [guard.missing for key, guard in GUARDS.items() if guards.get(key) is False]
