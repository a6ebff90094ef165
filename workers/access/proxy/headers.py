"""Headers between a browser and a job's server: neither sees or says what belongs to the platform.

The platform's cookies reach its ports too, as browsers do not tell ports apart; they stop here. From the job nothing
passes that would act on more than its own path.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

from django.conf import settings

HOP_BY_HOP = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
    "transfer-encoding", "upgrade",
})  # fmt: skip
#: Of browsers. Which cookies and which `Authorization` go along is said apart.
NOT_TO_JOBS = HOP_BY_HOP | {"cookie", "authorization", "host", "expect", "x-csrftoken", "content-length"}
#: Of jobs: what would act on other paths of the origin, on the whole host, or speak to third parties.
NOT_FROM_JOBS = HOP_BY_HOP | {
    "set-cookie", "set-cookie2", "location", "content-location", "clear-site-data", "service-worker-allowed",
    "strict-transport-security", "public-key-pins", "alt-svc", "nel", "report-to", "reporting-endpoints",
    "content-security-policy-report-only", "access-control-allow-origin", "access-control-allow-credentials",
    "access-control-allow-headers", "access-control-allow-methods", "access-control-allow-private-network",
    "origin-agent-cluster", "origin-trial", "server", "date", "cache-control",
}  # fmt: skip
SPEAKS_FOR_US = ("x-forwarded-", "x-aip-", "forwarded", "x-real-ip")
OWN_COOKIE = "aip-"


class PointsInside(Exception):
    """The job redirects to an address of the machines' own network."""


def text(raw: bytes) -> str:
    """Bytes of a header, which are UTF-8 as most programs write it, else Latin-1 as the standard says."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def pairs(raw: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    """Names and values of headers as they came."""
    return [(text(name), text(value)) for name, value in raw]


def own_cookie(job: int, name: str, *, secure: bool, mount: str) -> str:
    """Name of the cookie that lets a browser in to a port."""
    plain = f"{OWN_COOKIE}port-{job}-{name}"
    return f"__Host-{plain}" if secure and mount == "/" else plain


def is_platforms(cookie: str) -> bool:
    """Whether a cookie of this name is the platform's, or shall be mistaken for it."""
    names = {
        settings.SESSION_COOKIE_NAME, settings.CSRF_COOKIE_NAME, settings.LANGUAGE_COOKIE_NAME, "sessionid",
        "csrftoken", "messages",
    }  # fmt: skip
    return cookie in names or cookie.lower().startswith((OWN_COOKIE, "__host-", "__secure-"))


def cookies(header: str) -> list[tuple[str, str]]:
    """Parts of a `Cookie` header as (name, value)."""
    parts = (part.strip().partition("=") for part in header.split(";"))
    return [(name.strip(), value) for name, _equals, value in parts if name.strip()]


@dataclass(frozen=True)
class Passing:
    """Properties of one port that decide about its headers.

    Attributes:
        host: of the origin, as the browser says it.
        port: on which the job's server listens on its own loopback; None for a socket.
        secure: whether the browser came by https.
        mount: path under which the browser sees the port's root.
        strips: whether the job's server does not know that path.
        known: names of the cookies that its server set; None where every name may go to it.
        authorization: what is said to its server in the caller's place; "" says nothing.
    """

    host: str
    port: int | None
    secure: bool
    mount: str
    strips: bool
    known_cookies: Collection[str] | None
    authorization: str

    def means(self, netloc: str) -> bool:
        """Whether "host:port" of a redirect is the job's own server."""
        inner = {f"{name}:{self.port}" for name in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")}  # noqa: S104 - compared, not bound
        return netloc.lower() in {self.host.lower(), *(inner if self.port else ())}


def to_job(pairs_in: Iterable[tuple[str, str]], passing: Passing, *, client: str) -> list[tuple[str, str]]:
    """The headers for the job's server."""
    pairs_in = [(name.lower(), value) for name, value in pairs_in]
    hops = {part.strip().lower() for name, value in pairs_in if name == "connection" for part in value.split(",")}
    pairs_out = [
        (name, value)
        for name, value in pairs_in
        if name not in NOT_TO_JOBS | hops and not name.startswith((*SPEAKS_FOR_US, "sec-websocket"))
    ]
    own = [
        f"{name}={value}"
        for header, held in pairs_in
        if header == "cookie"
        for name, value in cookies(held)
        if not is_platforms(name) and (passing.known_cookies is None or name in passing.known_cookies)
    ]
    pairs_out += [("cookie", "; ".join(own))] if own else []
    if passing.authorization:
        pairs_out.append(("authorization", passing.authorization))
    else:
        pairs_out += [(name, value) for name, value in pairs_in if name == "authorization" and not is_token(value)]
    prefix = passing.mount.rstrip("/") if passing.strips else ""
    pairs_out += [("x-forwarded-prefix", prefix)] if prefix else []
    scheme = "https" if passing.secure else "http"
    forwarded = [("x-forwarded-for", client), ("x-forwarded-proto", scheme), ("x-forwarded-host", passing.host)]
    return [("host", passing.host), *pairs_out, *forwarded]


def is_token(authorization: str) -> bool:
    """Whether an `Authorization` header holds a token of the platform's API."""
    scheme, _space, value = authorization.strip().partition(" ")
    return scheme.lower() == "bearer" and value.strip().startswith("aip_")


def to_browser(
    pairs_in: Iterable[tuple[str, str]], passing: Passing, *, target: str, status: int
) -> list[tuple[str, str]]:
    """The headers for the browser.

    Args:
        asked: path and query that were asked of the job's server.

    Raises:
        PointsInside: a redirect to an address that only the machines themselves reach.
    """
    pairs_in = [(name.lower(), value) for name, value in pairs_in]
    hops = {part.strip().lower() for name, value in pairs_in if name == "connection" for part in value.split(",")}
    pairs_out = [(name, value) for name, value in pairs_in if name not in NOT_FROM_JOBS | hops]
    for name, value in pairs_in:
        if name == "set-cookie" and (cookie := narrowed(value, passing)):
            pairs_out.append((name, cookie))
        elif name == "location":
            pairs_out += (
                [(name, destination)] if (destination := location(value, passing, target=target, status=status)) else []
            )
    pairs_out.append(("cache-control", _private([value for name, value in pairs_in if name == "cache-control"])))
    return pairs_out


def new_cookies(shown: Iterable[tuple[str, str]], passing: Passing) -> set[str]:
    """Names of the cookies in headers for the browser that were not known of this port."""
    if passing.known_cookies is None:
        return set()
    names = {value.partition("=")[0].strip() for name, value in shown if name == "set-cookie"}
    return names - set(passing.known_cookies)


def _private(values: list[str]) -> str:
    """Cache rules for the browser; shared caches may keep nothing."""
    rules = [rule.strip() for value in values for rule in value.split(",") if rule.strip()]
    own = [rule for rule in rules if rule.lower().partition("=")[0] not in {"public", "private", "s-maxage"}]
    return ", ".join(["private", *own])


def narrowed(value: str, passing: Passing) -> str:
    """A `Set-Cookie` that holds for the port's own path and host alone; "" where its name is the platform's."""
    first, *attributes = [part.strip() for part in value.split(";")]
    name = first.partition("=")[0].strip()
    if not name or "=" not in first or is_platforms(name):
        return ""
    parts = [part for part in attributes if part.partition("=")[0].strip().lower() not in {"domain", "path"}]
    if not passing.secure:  # browsers drop such cookies on plain http
        parts = [part for part in parts if part.lower() not in {"secure", "samesite=none", "partitioned"}]
    path = passing.mount
    cookie_path = next((part.partition("=")[2].strip() for part in attributes if part.lower().startswith("path=")), "")
    inside = passing.mount.rstrip("/") + "/" + cookie_path.lstrip("/") if passing.strips else cookie_path
    if inside.startswith(passing.mount) and ".." not in inside:
        path = inside
    return "; ".join([first, *parts, f"Path={path}"])


def location(value: str, passing: Passing, *, target: str, status: int) -> str:
    """Destination of a redirect, as the browser sees it.

    Raises:
        PointsInside: see `to_browser`.
    """
    own = f"http://{passing.host}"
    try:
        destination = urlsplit(urljoin(own + target, value.strip().replace("\\", "/")))
        _port = destination.port  # some addresses are found out to be none only here
    except ValueError:
        raise PointsInside from None
    if destination.scheme not in {"http", "https"} or any(ord(letter) < 33 for letter in value.strip()):
        if 300 <= status < 400:
            raise PointsInside
        return ""
    if passing.means(destination.netloc):
        path = destination.path or "/"
        if passing.strips and not path.startswith(passing.mount):
            path = passing.mount.rstrip("/") + path
        if path.startswith("//"):  # would name another host
            path = "/" + path.lstrip("/")
        query = f"?{destination.query}" if destination.query else ""
        return path + query + (f"#{destination.fragment}" if destination.fragment else "")
    if is_inside(destination.hostname or ""):
        raise PointsInside
    return destination.geturl()


def is_inside(host: str) -> bool:
    """Whether a host is an address, or a name, that means something only within the machines' own network."""
    try:
        return not ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_global
    except ValueError:
        pass
    name = host.lower().rstrip(".")
    numeric = all(part.isdigit() or part.startswith("0x") for part in name.split("."))  # 2130706433, 0x7f.1
    return numeric or "." not in name or name.endswith((".localhost", ".local", ".internal", ".lan", ".home.arpa"))
