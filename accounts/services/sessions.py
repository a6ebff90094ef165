"""Signed-in browsers: listed for their owner, ended one by one."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.contrib.sessions.models import Session
from django.db import transaction
from django.utils.timezone import now

from accounts.models import User, UserSession
from accounts.services import audit
from aiplatform.lib import stamps

LAST_SEEN_INTERVAL_S = 60.0  # how often a session's last sight is written down
LOOKED_AT = "seen"  # key in the session

_BROWSERS = (("Edg/", "Edge"), ("OPR/", "Opera"), ("Firefox/", "Firefox"), ("Chrome/", "Chrome"), ("Safari/", "Safari"))
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def device(agent: str) -> str:
    """Describe a browser in words: "Firefox on Linux"; its first word where it is unknown."""
    browser = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((name for mark, name in _SYSTEMS if mark in agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or re.split(r"[\s/]", agent.strip(), maxsplit=1)[0][:50]


def began(request: Any, user: User) -> None:
    """Record a sign-in; called while the session's key is new."""
    session = getattr(request, "session", None)
    if session is None or not session.session_key:
        return
    session[LOOKED_AT] = now().timestamp()
    UserSession.objects.update_or_create(
        session_key=session.session_key,
        defaults={
            "user": user,
            "device": device(request.META.get("HTTP_USER_AGENT", "")),
            "address": str(request.META.get("REMOTE_ADDR") or "")[:45],
            "created_at": now(),
            "seen_at": now(),
        },
    )


def record_request(request: Any) -> None:
    """Record a request of a signed-in browser, at most once a minute."""
    last = request.session.get(LOOKED_AT)
    if last is None or now().timestamp() - last < LAST_SEEN_INTERVAL_S:
        return
    row = UserSession.objects.filter(session_key=request.session.session_key)
    if stamps.stamp(row, seen_at=now(), address=str(request.META.get("REMOTE_ADDR") or "")[:45]):
        request.session[LOOKED_AT] = now().timestamp()  # saved with the answer; not where a writer holds the lock


def moved(*, old: str | None, new: str | None) -> None:
    """Record that a session got another key (its password changed) and end all others of the person."""
    row = UserSession.objects.filter(session_key=old or "").first()
    if row and new:
        UserSession.objects.filter(user=row.user_id).exclude(pk=row.pk).delete()
        UserSession.objects.filter(pk=row.pk).update(session_key=new)


def list_live(user: User) -> list[UserSession]:
    """Return the user's live sessions, the one used last first."""
    rows = list(UserSession.objects.filter(user=user))
    live = Session.objects.filter(session_key__in=[row.session_key for row in rows], expire_date__gt=now())
    keys = set(live.values_list("session_key", flat=True))
    return [row for row in rows if row.session_key in keys]


@transaction.atomic
def end(row: UserSession, *, by: User) -> None:
    """Sign a browser out; its next request is sent to the sign-in page."""
    Session.objects.filter(session_key=row.session_key).delete()
    audit.record(by, "session_ended", row.user, device=row.device, address=row.address)
    row.delete()


def end_others(user: User, *, but: str | None, by: User) -> int:
    """Sign out all browsers of `user` except the one with session key `but`; returns how many."""
    others = [row for row in list_live(user) if row.session_key != but]
    for row in others:
        end(row, by=by)
    return len(others)


def forget_old() -> None:
    """Delete rows whose session is over."""
    old = UserSession.objects.filter(seen_at__lt=now() - timedelta(days=1))
    live = Session.objects.filter(expire_date__gt=now()).values("session_key")
    old.exclude(session_key__in=live).delete()
