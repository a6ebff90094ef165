"""Where a server of a service answers: an address, and the path before everything where it shares its process."""

from __future__ import annotations

from typing import NamedTuple

from workers.access.proxy import endpoints
from workers.core.models import Job

KIND = "service_host"  # of the jobs whose process several services share


class Place(NamedTuple):
    """Host and port of a server, and the prefix of its paths ("/m/3-7"); "" for a server with its own process."""

    host: str
    port: int
    prefix: str = ""


def is_shared(job: Job | None) -> bool:
    """Whether a job is a process that several services share."""
    return job is not None and job.kind == KIND


def name_of(service_id: int, version_id: int) -> str:
    """What a service that answers with a version is called within its process."""
    return f"{service_id}-{version_id}"


def ids(name: str) -> tuple[int, int] | None:
    """The service and the version of such a name; None where it is none."""
    service, _line, version = name.partition("-")
    sound = all(part.isascii() and part.isdigit() and len(part) < 19 for part in (service, version))
    return (int(service), int(version)) if sound else None


def place(job: Job, service_id: int, version_id: int | None) -> Place | None:
    """Return the address of a service's server for a version in the running attempt of a job; None without one."""
    endpoint = endpoints.endpoint(job)
    if endpoint is None:
        return None
    return Place(*endpoint, f"/m/{name_of(service_id, version_id or 0)}" if is_shared(job) else "")
