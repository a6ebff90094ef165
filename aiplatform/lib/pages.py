"""Base of HTML views: declared permissions, and refusals shown to people."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from http import HTTPStatus
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
def errors_shown_on(form: BaseForm) -> Iterator[None]:
    """Turn a DomainError, and all it brings along, into errors on the fields they blame."""
    try:
        yield
    except NotAllowed:
        raise
    except DomainError as exc:
        for refusal in exc.every:
            show(form, refusal)


def show(form: BaseForm, refusal: DomainError) -> None:
    """Put one refusal on the field it blames; a form's `called` says which fields have another name in the service."""
    field = getattr(form, "called", {}).get(refusal.blamed, refusal.blamed)
    form.add_error(field if field in form.fields else None, refusal.message)


def check_valid_fields(form: BaseForm, check: Callable[..., object], **context: object) -> None:
    """Add the errors that a service would raise for the valid fields, after the form itself refused others.

    Args:
        check: takes the names of the form's fields that it judges and `context`, each of which may be left out.
    """
    if not form.errors:
        return
    names = inspect.signature(check).parameters
    right = {name: value for name, value in form.cleaned_data.items() if name in names and name not in form.errors}
    with errors_shown_on(form):
        check(**right, **context)


@contextmanager
def errors_as_messages(request: HttpRequest) -> Iterator[None]:
    """Show a DomainError as a message on the next page, where there is no form to show it."""
    try:
        yield
    except DomainError as exc:
        for refusal in exc.every:
            messages.error(request, refusal.message)


def is_name_confirmed(request: HttpRequest, name: str) -> bool:
    """Whether the dialog before a dangerous act came back with `name` typed; if not, the next page says so."""
    if request.POST.get("confirm", "").strip() == name:
        return True
    messages.error(request, _("The name does not match. Nothing was deleted."))
    return False


#: Templates that say a refusal better than refused.html, by its code.
REFUSAL_PAGES = {"no_rights": "accounts/no_rights.html"}


def _only_acts(request: HttpRequest, answer: HttpResponse) -> HttpResponse:
    """A page for who comes by GET to an address that only takes forms, as after signing in once more."""
    from django.shortcuts import render  # noqa: PLC0415 - needs loaded settings

    page = render(request, "405.html", {"code": "method_not_allowed"}, status=answer.status_code)
    page["Allow"] = answer["Allow"]
    return page


class RefusalMiddleware:
    """Answer a DomainError that no form caught with an error page; scripts read `X-Refusal`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.method not in METHODS and not request.path.startswith("/api/"):
            return HttpResponseNotAllowed(METHODS)
        answer = self.get_response(request)
        if answer.status_code == HTTPStatus.METHOD_NOT_ALLOWED and request.method == "GET" and not answer.content:
            return _only_acts(request, answer)
        return answer

    def process_exception(self, request: HttpRequest, exc: Exception) -> HttpResponse | None:
        if not isinstance(exc, DomainError):
            return None
        from django.shortcuts import render  # noqa: PLC0415 - needs loaded settings

        if exc.status == 403:
            denials.report(request, exc.code)
        page = REFUSAL_PAGES.get(exc.code, "refused.html")
        answer = render(request, page, {"refusal": exc, "code": exc.code}, status=exc.status)
        answer["X-Refusal"] = quote(exc.sentences[:500])
        return answer
