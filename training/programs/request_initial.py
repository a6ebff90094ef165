"""What the forms of all requests begin with of a request as text, which may be half wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from accounts.models import User
from training.programs.input_fields import lines_of
from workers.core.models import Job
from workers.resources.nodes import device_rules

GIB = 1 << 30
MAX_BYTES = 2**63  # more is no size, and no number of a form
MAX_MIB = 2**53  # more is no memory, and no number of a form


def shared(user: User, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return initial values of the fields that custom jobs, workspaces and custom code share."""
    seconds, mib, priority = request["max_runtime_s"], request["memory_mib"], request["priority"]
    size = request["max_disk_bytes"]
    current = user.memberships.order_by("-is_current", "pk").values_list("cluster", flat=True).first()
    return {
        "variables": lines_of(request["variables"]),
        "secrets": lines_of(request["secrets"]),
        "datasets": request["datasets"] if isinstance(request["datasets"], list) else [],
        "snapshot": request["code"],
        "image": request["image"],
        "cluster": request["cluster"] or current,
        "max_runtime_min": seconds // 60 if isinstance(seconds, int) else seconds,
        "device": device_rules.value_of(request["device_kind"], request["device_model"], request["gpus_per_node"]),
        "max_disk_gib": size / GIB if isinstance(size, int | float) and 0 < abs(size) < MAX_BYTES else None,
        "memory_gib": mib / 1024 if isinstance(mib, int | float) and 0 < abs(mib) < MAX_MIB else None,
        "priority": 0 if priority == Job.URGENT else priority,
        "urgent": priority == Job.URGENT,
    }
