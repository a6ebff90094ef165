"""Signal receivers that write sign-ins, lockouts and refusals into the audit trail."""

from __future__ import annotations

from typing import Any

from axes.signals import user_locked_out
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest
from django.utils.translation import get_language

from accounts.models import User, UserSession
from accounts.services import audit, sessions, taking_over
from aiplatform.lib import denials


def signed_in(sender: Any, request: HttpRequest | None, user: Any, **more: Any) -> None:
    provider = getattr(request, "way_in", None)
    audit.record(user, "signed_in", user, **({"way": provider} if provider else {}))
    sessions.began(request, user)
    language = get_language() or ""
    if language != user.heard_language:  # what is written to them while they are away is in this language
        User.objects.filter(pk=user.pk).update(heard_language=language[:10])


def signed_out(sender: Any, request: HttpRequest, user: Any, **more: Any) -> None:
    if isinstance(user, User):
        who = getattr(request, "behind", None) or user  # an administrator in a takeover signs out as themselves
        taking_over.end(request)
        audit.record(who, "signed_out", who)
        UserSession.objects.filter(session_key=getattr(request.session, "session_key", None) or "").delete()


def sign_in_failed(sender: Any, credentials: dict[str, Any], request: HttpRequest | None = None, **more: Any) -> None:
    """Record a failed sign-in, without unknown names: they may be passwords typed into the wrong box."""
    username = str(credentials.get("username") or "").replace("\x00", "")
    person = User.objects.filter(username__iexact=username).first() if username else None
    audit.record(None, "sign_in_failed", person, known=person is not None)


def locked_out(sender: Any, request: HttpRequest, username: str | None = None, **more: Any) -> None:
    name = str(username or "").replace("\x00", "")
    person = User.objects.filter(username__iexact=name).first() if name else None
    audit.record(None, "locked_out", person, known=person is not None)


def denied(request: HttpRequest, code: str) -> None:
    user = getattr(request, "user", None)
    person = user if isinstance(user, User) else None
    audit.record_refusal(person, "denied", request.path, method=request.method, code=code)


def connect() -> None:
    """Called once from AppConfig.ready()."""
    user_logged_in.connect(signed_in, dispatch_uid="audit")
    user_logged_out.connect(signed_out, dispatch_uid="audit")
    user_login_failed.connect(sign_in_failed, dispatch_uid="audit")
    user_locked_out.connect(locked_out, dispatch_uid="audit")
    denials.register(denied)
