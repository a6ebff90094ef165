"""Types for views."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from accounts.models import User


class SignedInRequest(HttpRequest):
    """A request that passed LoginRequiredMiddleware, for type checkers."""

    user: User  # type: ignore[assignment]
    htmx: HtmxDetails
