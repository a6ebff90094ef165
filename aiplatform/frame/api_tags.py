"""Tags of the API's documentation: the entries of the navigation, so that both are arranged and named alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import translation

from aiplatform.frame.navigation import all_entries

ACCOUNT = "Account"
#: Entry of the navigation → first parts of API paths after /api/v1/.
RESOURCES: Mapping[str, tuple[str, ...]] = {
    "datasets": ("assets", "datasets", "files", "uploads", "versions"),
    "annotation": ("annotation",),
    "training": ("studies", "training"),
    "experiments": ("reports", "run-importance", "run-views", "runs", "visualisation"),
    "workspaces": ("commands", "environments", "images", "ports", "registry-logins", "templates"),
    "models": ("conversions", "evaluation-sets", "evaluations", "model-tasks", "model-versions", "models"),
    "endpoints": ("predictions", "services", "video-files", "videos"),
    "devices": ("edge", "edge-devices", "edge-groups", "push-targets", "pushes"),
    "pipelines": (
        "pipeline-approvals", "pipeline-hooks", "pipeline-runs", "pipeline-texts", "pipeline-triggers", "pipelines",
    ),
    "jobs": ("approvals", "arrays", "jobs", "time-requests"),
    "nodes": ("cluster", "devices", "history", "nodes", "resource-groups"),
    "usage": ("clusters", "usage"),
    "users": ("audit", "groups", "roles", "shares", "users"),
    "alerts": ("alarm-addresses", "alarm-rules", "alarms"),
    "": ("auth", "me", "notifications", "sample-project", "secrets", "ssh-keys"),
}  # fmt: skip


def tag_paths(result: dict[str, Any], **_options: Any) -> dict[str, Any]:
    """Tag each operation with its entry and list the tags in the order of the side bar (a hook of drf-spectacular)."""
    with translation.override("en"):
        names = {entry.key: str(entry.label) for entry in all_entries() if entry.key in RESOURCES} | {"": ACCOUNT}
    tags = {resource: names[entry] for entry, resources in RESOURCES.items() for resource in resources}
    for path, operations in result["paths"].items():
        resource = path.removeprefix("/api/v1/").split("/")[0]
        for operation in operations.values():
            if isinstance(operation, dict):
                operation["tags"] = [tags.get(resource, ACCOUNT)]
    result["tags"] = [{"name": name} for name in names.values()]
    return result
