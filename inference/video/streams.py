"""Addresses of streams: judged before a job gets them, shown without what is secret in them."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit

from django.conf import settings
from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError
from inference.video.watcher import gate

MAX_LENGTH = 500


class StreamRefused(DomainError, code="stream_refused", status=400, field="url"):
    """This address is no stream's, or leads where it may not."""


def check(url: str) -> None:
    """Refuse an address that may never be opened; one that does not resolve now passes: the job tries again.

    Raises:
        StreamRefused.
    """
    parts = _parts(url)
    if len(url) > MAX_LENGTH or parts is None or parts.scheme not in gate.PORTS or not parts.hostname:
        prefixes = ", ".join(f"{name}://" for name in gate.PORTS)
        raise StreamRefused(_("The address of a stream must start with one of: %(known)s.") % {"known": prefixes})
    try:
        gate.resolve(url, settings.STREAM_ALLOWED)
    except gate.Refused as exc:
        if not exc.final:
            return
        message = _(
            "%(host)s is inside this network, or is not a stream address. An operator can allow it with "
            "AIP_STREAM_ALLOWED."
        )
        raise StreamRefused(message % {"host": parts.hostname}) from None


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises where it is none
    except ValueError:
        return None
    return parts


def masked(url: str) -> str:
    """Return the address for display: without password and without query."""
    parts = _parts(url)
    if parts is None:
        return "–"
    host = parts.netloc.rpartition("@")[2]
    name = f"{parts.username}:***@" if parts.username else ""
    return urlunsplit((parts.scheme, name + host, parts.path, "…" if parts.query else "", ""))


def secrets_of(url: str) -> list[str]:
    """Return the parts that are masked in the log of the job."""
    parts = _parts(url)
    if parts is None:
        return []
    secrets = [url, parts.password or "", parts.query, *(part.partition("=")[2] for part in parts.query.split("&"))]
    return [secret for secret in secrets if len(secret) > 2]
