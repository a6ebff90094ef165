"""Base of HTML views: declared permissions, and refusals shown to people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from urllib.parse import quote

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from aiplatform.lib import denials, ids
from aiplatform.lib.errors import DomainError, NotAllowed

METHODS = ("GET", "HEAD", "POST", "OPTIONS")
"""HTTP methods of pages; all others are the API's."""

View = Callable[..., HttpResponseBase]


def needs(action: str) -> Callable[[View], View]:
    """Declare the action a page requires; tests fail for a route without one."""

    def wrap(view: View) -> View:
        @wraps(view)
        def checked(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            request.user.require(action)  # type: ignore[union-attr]  # the middleware let only signed-in people in
            ids.require_possible(kwargs)
            return view(request, *args, **kwargs)

        checked.needs = action  # type: ignore[attr-defined]  # read by the middleware and by tests
        return checked

    return wrap


@contextmanager
def refusals_shown_on(form: BaseForm) -> Iterator[None]:
    """Turn a DomainError into an error on the field it blames."""
    try:
        yield
    except NotAllowed:
        raise
    except DomainError as exc:
        form.add_error(exc.blamed if exc.blamed in form.fields else None, exc.message)


@contextmanager
def refusals_said(request: HttpRequest) -> Iterator[None]:
    """Show a DomainError as a message on the next page, where there is no form to show it."""
    try:
        yield
    except DomainError as exc:
        messages.error(request, exc.message)


def name_typed(request: HttpRequest, name: str) -> bool:
    """Whether the dialog before a dangerous act came back with `name` typed; if not, the next page says so."""
    if request.POST.get("confirm", "").strip() == name:
        return True
    messages.error(request, _("The name was not typed right. Nothing was deleted."))
    return False


#: Templates that say a refusal better than refused.html, by its code.
REFUSAL_PAGES = {"no_rights": "accounts/no_rights.html"}


class RefusalMiddleware:
    """Answer a DomainError that no form caught with an error page; scripts read `X-Refusal`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in METHODS and not request.path.startswith("/api/"):
            return HttpResponseNotAllowed(METHODS)
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse | None:
        if not isinstance(exc, DomainError):
            return None
        from django.shortcuts import render  # noqa: PLC0415 - needs loaded settings

        if exc.status == 403:
            denials.tell(request, exc.code)
        page = REFUSAL_PAGES.get(exc.code, "refused.html")
        answer = render(request, page, {"refusal": exc}, status=exc.status)
        answer["X-Refusal"] = quote(exc.message[:500])
        return answer
