"""Tokens of jobs: made where an attempt starts, known by their digest, over when the attempt is."""

from __future__ import annotations

import secrets
from typing import Any

from accounts.services.tokens import digest
from training.experiments.tracking.models import JobToken
from workers.core.models import Attempt

PREFIX = "aipjob_"  # unlike that of people's tokens, so that no other door takes one for theirs


def issue(attempt: Attempt) -> str:
    """Make the token of an attempt and return its secret, which is kept nowhere; it is good while the attempt lives."""
    secret = PREFIX + secrets.token_urlsafe(32)
    JobToken.objects.create(attempt=attempt, digest=digest(secret))
    return secret


def find(secret: str) -> JobToken | None:
    """Return the token with this secret, while its attempt runs and its owner may sign in."""
    if not secret.startswith(PREFIX):
        return None
    relations = ("attempt__job__owner", "attempt__job__cluster")
    alive = JobToken.objects.select_related(*relations).filter(attempt__ended_at=None)
    token = alive.filter(digest=digest(secret)).first()
    if token is None or token.attempt.number != token.attempt.job.attempt_number:
        return None
    return token if token.attempt.job.owner.is_active else None


def of_scope(scope: dict[str, Any]) -> JobToken | None:
    """The token behind an ASGI scope, for a body that is taken in before the call is looked at."""
    if not scope.get("path", "").startswith("/api/mlflow/"):
        return None
    sent = next((value for name, value in scope["headers"] if name == b"authorization"), b"").decode("latin-1")
    scheme, _space, secret = sent.partition(" ")
    return find(secret.strip()) if scheme.lower() == "bearer" else None
