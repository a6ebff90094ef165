"""Addresses of streams: judged before a job gets them, shown without what is secret in them."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import SplitResult, urlsplit, urlunsplit

from django.conf import settings
from django.utils.translation import gettext as _

from aiplatform.lib.errors import DomainError
from inference.video.watcher import gate

LONGEST = 500


class StreamRefused(DomainError):
    """This address is no stream's, or leads where it may not."""

    code: ClassVar[str] = "stream_refused"
    field: ClassVar[str] = "url"
    status: ClassVar[int] = 400


def check(url: str) -> None:
    """Refuse an address that may never be opened; one that does not resolve now passes: the job tries again.

    Raises:
        StreamRefused.
    """
    parts = _parts(url)
    if len(url) > LONGEST or parts is None or parts.scheme not in gate.PORTS or not parts.hostname:
        known = ", ".join(f"{name}://" for name in gate.PORTS)
        raise StreamRefused(_("The address of a stream begins with one of: %(known)s.") % {"known": known})
    try:
        gate.judged(url, settings.STREAM_ALLOWED)
    except gate.Refused as exc:
        if not exc.final:
            return
        said = _(
            "%(host)s lies inside this network, or is no address of a stream. An operator can allow it with "
            "AIP_STREAM_ALLOWED."
        )
        raise StreamRefused(said % {"host": parts.hostname}) from None


def _parts(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises where it is none
    except ValueError:
        return None
    return parts


def masked(url: str) -> str:
    """The address for people: without password, and without what stands behind a question mark."""
    parts = _parts(url)
    if parts is None:
        return "–"
    place = parts.netloc.rpartition("@")[2]
    name = f"{parts.username}:***@" if parts.username else ""
    return urlunsplit((parts.scheme, name + place, parts.path, "…" if parts.query else "", ""))


def secrets_of(url: str) -> list[str]:
    """What is starred out in the log of the job."""
    parts = _parts(url)
    if parts is None:
        return []
    found = [url, parts.password or "", parts.query, *(part.partition("=")[2] for part in parts.query.split("&"))]
    return [secret for secret in found if len(secret) > 2]
