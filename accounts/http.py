"""Types for views."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails
from rest_framework.request import Request

from accounts.models import User


class SignedInRequest(HttpRequest):
    """A request that passed LoginRequiredMiddleware, for type checkers."""

    user: User
    htmx: HtmxDetails


class ApiRequest(Request):
    """An API request of a signed-in user, for type checkers."""

    user: User
