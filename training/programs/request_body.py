"""What the requests of commands, environments and own code have alike, as text for templates and the expert page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workers.jobs.following import FIELDS, Following
from workers.jobs.forms.resource_request import ResourceForm


def typed(form: ResourceForm) -> dict[str, Any]:
    """Return the data of a form; refused values are kept as typed."""
    return {**{name: form.data.get(name, "") for name in form.errors}, **form.cleaned_data}


def of_form(form: ResourceForm, data: Mapping[str, Any], plain: Iterable[str]) -> dict[str, Any]:
    """The request of a form.

    Args:
        data: as `typed` returns it.
        plain: fields that stand in a request as they stand in the form.
    """
    requested = form.resources()
    cluster, span = requested.get("cluster"), requested.get("max_runtime")
    return {name: data[name] for name in plain if data.get(name) not in (None, "")} | {
        "priority": requested.get("priority", 0),
        "memory_mib": requested.get("memory_mib", 0),
        "max_disk_bytes": requested.get("max_disk_bytes"),
        "device_kind": requested.get("device_kind", "gpu"),
        "device_model": requested.get("device_model", ""),
        "variables": data.get("variables") or {},
        "secrets": data.get("secrets") or {},
        "datasets": [version.pk for version in data.get("datasets") or () if hasattr(version, "pk")],
        "code": number_of(data.get("snapshot")),
        "image": number_of(data.get("image")),
        "cluster": number_of(cluster),
        "max_runtime_s": int(span.total_seconds()) if span else None,
    }


def of_following(following: Following) -> dict[str, Any]:
    """What comes first and how often it is tried, as a form says it."""
    return {name: list(getattr(following, name)) for name in FIELDS} | of_retries(following)


def of_retries(following: Following) -> dict[str, Any]:
    """How often it is tried: what a request made again keeps of `Following`."""
    return {"retries": following.retries, "retry_pause_s": following.retry_pause_s}


def of_request(request: Mapping[str, Any], secret_names: Iterable[str]) -> dict[str, Any]:
    """Convert a service's request, with numbers for rows; secrets by name, to be entered again."""
    span = request["max_runtime"]
    body = {name: value for name, value in request.items() if name not in ("max_runtime", "following")}
    return body | {
        **{name: number_of(request[name]) for name in ("cluster", "code", "image")},
        "datasets": [version.pk for version in request["datasets"]],
        "secrets": dict.fromkeys(secret_names, ""),
        "max_runtime_s": int(span.total_seconds()) if span else None,
    }


def shortened(request: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """A request without what is the default anyway."""
    return {name: value for name, value in request.items() if name not in defaults or defaults[name] != value}


def number_of(row: Any) -> Any:
    """The number of a row; what is none, such as a word that was typed, as it is."""
    return getattr(row, "pk", row) or None


def words_of(value: Any) -> str:
    """Return several numbers as a form shows them."""
    return ", ".join(str(item) for item in value) if isinstance(value, list) else str(value)
