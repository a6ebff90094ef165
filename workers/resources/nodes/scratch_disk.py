"""What disk a machine keeps decoded images and temporary files of jobs on, in words."""

from __future__ import annotations

from django.utils.translation import gettext as _

from workers.core.models import Node


def describe(node: Node) -> str:
    """A sentence with the folder, as its agent last reported it; "" before that."""
    fact = node.facts.get("scratch") or {}
    return sentence(fact["path"], spins=fact.get("spins")) if fact else ""


def sentence(path: str, *, spins: bool | None) -> str:
    """What is stored there and whether the disk is fast enough; `spins` None: unknown.

    `spins` is what `telemetry.rotation` found.
    """
    if spins is None:
        return _("%(path)s: the disk type is unknown.") % {"path": path}
    if spins:
        return _(
            "%(path)s: a hard disk, which is too slow for several GPUs. Set AIP_SCRATCH_ROOT to an NVMe or SSD."
        ) % {"path": path}
    return _("%(path)s: a solid-state disk.") % {"path": path}
