"""URLs of the published ports of jobs: one origin with a path per port, or an origin per port.

http://platform-host:8001/jobs/12/web/…     without AIP_PORTS_HOST: all ports share cookies and browser storage
http://job-12-web.jobs.example.org:8001/…   with AIP_PORTS_HOST: the browser isolates the ports from each other
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

ENTER = "_enter"  # path below a port that exchanges the ticket of a user for a session cookie
_PATH = re.compile(r"/jobs/([0-9]{1,18})/([a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?)(/.*|\Z)", re.DOTALL)
_LABEL = re.compile(r"job-([0-9]{1,18})-([a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?)\Z")


@dataclass(frozen=True)
class Target:
    """The port that a URL refers to, and the path below it.

    Attributes:
        job: id of the job.
        name: name of the port.
        mount: path in the URL that is the root of the port: "/jobs/12/web/", or "/" if each port has its own host.
        rest: raw path below `mount`, without leading slash; None if the URL lacks the slash at the end of `mount`.
    """

    job: int
    name: str
    mount: str
    rest: str | None


def are_ports_enabled() -> bool:
    """Return whether the platform serves ports of jobs at all."""
    return bool(settings.PORTS_PORT)


def has_host_per_port() -> bool:
    """Return whether each port has its own host name, and therefore its own origin."""
    return bool(settings.PORTS_HOST)


def base_path(job: int, name: str) -> str:
    """Return the path in the URL that is the root of a port, for servers that must know their base path."""
    return "/" if has_host_per_port() else f"/jobs/{job}/{name}/"


def origin(job: int, name: str, *, host: str, secure: bool) -> str:
    """Return "scheme://host[:port]" of a port.

    Args:
        host: Host header of the request to the platform; without AIP_PORTS_HOST the ports are on the same host.
        secure: whether that request used https.
    """
    if not has_host_per_port():
        scheme = "https" if secure else "http"
        return f"{scheme}://{_without_port(host)}:{settings.PORTS_PORT}"
    ports_host = settings.PORTS_HOST
    scheme, _separator, domain = ports_host.rpartition("://")
    scheme = scheme or ("https" if settings.SITE_URL.startswith("https://") else "http")
    port = "" if ":" in domain or scheme == "https" else f":{settings.PORTS_PORT}"
    return f"{scheme}://job-{job}-{name}.{domain}{port}"


def parse_target(host: str, path: str) -> Target | None:
    """Return the target of a Host header and raw path; None if they refer to no port."""
    if not has_host_per_port():
        match = _PATH.match(path)
        if match is None:
            return None
        job, name, rest = int(match[1]), match[2], match[3]
        return Target(job, name, f"/jobs/{job}/{name}/", rest[1:] if rest else None)
    domain_suffix = "." + _without_port(settings.PORTS_HOST.rpartition("://")[2])
    host_name = _without_port(host.lower())
    match = _LABEL.match(host_name.removesuffix(domain_suffix)) if host_name.endswith(domain_suffix) else None
    return Target(int(match[1]), match[2], "/", path.removeprefix("/")) if match else None


def _without_port(host: str) -> str:
    """Return the host name of a Host header; "" if it is malformed."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:  # as in "[::1"
        return ""
    return f"[{name}]" if ":" in name else name
