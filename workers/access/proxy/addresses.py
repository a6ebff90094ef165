"""Addresses of ports of jobs: on one origin told apart by their path, or each on an origin of its own by its name.

http://this-host:8001/jobs/12/web/…                 without AIP_PORTS_HOST: cookies and storage are one for all
http://job-12-web.jobs.example.org:8001/…           with it: browsers keep the ports of jobs apart
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings

ENTER = "_enter"
_PATH = re.compile(r"/jobs/([0-9]{1,18})/([a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?)(/.*|\Z)", re.DOTALL)
_NAME = re.compile(r"job-([0-9]{1,18})-([a-z0-9](?:[a-z0-9-]{0,28}[a-z0-9])?)\Z")


@dataclass(frozen=True)
class Target:
    """What an address leads to.

    Attributes:
        mount: path of the browser's that is the port's root: "/jobs/12/web/", with names "/".
        rest: raw path below it, without a first slash; None where the address is the mount without its last slash.
    """

    job: int
    name: str
    mount: str
    rest: str | None


def offered() -> bool:
    """Whether ports of jobs are offered at all."""
    return bool(settings.PORTS_PORT)


def named() -> bool:
    """Whether each port has a name, and so an origin, of its own."""
    return bool(settings.PORTS_HOST)


def base_path(job: int, name: str) -> str:
    """The path under which browsers see the root of a port; servers that must know it receive this one."""
    return "/" if named() else f"/jobs/{job}/{name}/"


def origin(job: int, name: str, *, host: str, secure: bool) -> str:
    """Return "scheme://host[:port]" of a port.

    Args:
        host: by which the person reached the platform; the origin is on the same machine.
        secure: whether they did so by https.
    """
    if not named():
        scheme = "https" if secure else "http"
        return f"{scheme}://{_without_port(host)}:{settings.PORTS_PORT}"
    ports_host = settings.PORTS_HOST
    scheme, _divided, below = ports_host.rpartition("://")
    scheme = scheme or ("https" if settings.SITE_URL.startswith("https://") else "http")
    port = "" if ":" in below or scheme == "https" else f":{settings.PORTS_PORT}"
    return f"{scheme}://job-{job}-{name}.{below}{port}"


def target(host: str, path: str) -> Target | None:
    """The target of a browser's Host header and raw path; None without one."""
    if not named():
        match = _PATH.match(path)
        if match is None:
            return None
        job, name, rest = int(match[1]), match[2], match[3]
        return Target(job, name, f"/jobs/{job}/{name}/", rest[1:] if rest else None)
    below = "." + _without_port(settings.PORTS_HOST.rpartition("://")[2])
    name_given = _without_port(host.lower())
    match = _NAME.match(name_given.removesuffix(below)) if name_given.endswith(below) else None
    return Target(int(match[1]), match[2], "/", path.removeprefix("/")) if match else None


def _without_port(host: str) -> str:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:  # as in "[::1"
        return ""
    return f"[{name}]" if ":" in name else name
