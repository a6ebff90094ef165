"""Base of all API views: default-deny permissions, keyset pages, one error shape (RFC 9457)."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.db.models import Model, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import exceptions
from rest_framework.fields import SkipField
from rest_framework.pagination import CursorPagination
from rest_framework.relations import PrimaryKeyRelatedField
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.settings import api_settings
from rest_framework.views import APIView
from rest_framework.views import exception_handler as drf_handler
from rest_framework.viewsets import GenericViewSet

from aiplatform.lib import denials, ids, keyset, queries
from aiplatform.lib.errors import DomainError, Invalid, NotAllowed
from aiplatform.lib.ordering import PARAMETER, Ordering
from aiplatform.lib.problems import problem

if TYPE_CHECKING:
    from accounts.http import ApiRequest


class KeysetPagination(CursorPagination):
    """Pages by key, not by offset: page 10,000 costs what page 1 costs. `?limit=` is from 1 to 200."""

    page_size = 50
    page_size_query_param = "limit"
    max_page_size = 200
    ordering: str | tuple[str, ...] = "-pk"

    def get_page_size(self, request: Request) -> int | None:
        """Rows of a page.

        Raises:
            Invalid: more than a page holds; fewer rows than were asked for would pass for all of them.
        """
        limit = ids.number(request.query_params.get("limit", ""))
        if limit is not None and limit > self.max_page_size:
            message = _("limit must be from 1 to %(most)s. Use the address in “next” for the remaining rows.")
            raise Invalid(message % {"most": self.max_page_size}, field="limit")
        size: int | None = super().get_page_size(request)
        return size

    def get_ordering(self, request: Request, queryset: QuerySet[Any], view: Any) -> Any:
        """The columns that `?ordering=` asks for, of those the view allows; its usual order without."""
        orders: Ordering | None = getattr(view, "orders", None)
        if orders is None or not request.query_params.get(PARAMETER):
            return super().get_ordering(request, queryset, view)
        column = orders.column(orders.demanded(request.query_params))
        return column, "-pk" if column.startswith("-") else "pk"

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> Any:
        orders: Ordering | None = getattr(view, "orders", None)
        if orders is not None and request.query_params.get(PARAMETER):
            queryset = orders.with_column(queryset, orders.demanded(request.query_params))
        return super().paginate_queryset(queryset, request, view)

    def get_paginated_response_schema(self, schema: Any) -> dict[str, Any]:
        """Describe a page; its first and last have no address before and behind them."""
        address = {"type": ["string", "null"], "format": "uri"}
        properties = {"next": address, "previous": address, "results": schema}
        return {"type": "object", "required": ["next", "previous", "results"], "properties": properties}

    def _get_position_from_instance(self, instance: Any, ordering: Any) -> Any:
        value = keyset.value_of(instance, ordering[0].removeprefix("-"))  # DRF's own does not reach through relations
        return None if value is None else str(value)


class OldestFirstPagination(KeysetPagination):
    """Oldest first: for few rows that keep their order, such as machines and clusters."""

    ordering = "id"


class PlatformViewSet(GenericViewSet):
    """A viewset that refuses actions without a declared permission and unknown query parameters.

    `asks` names what each action reads besides paging; names in `asks_many` may be repeated. `orders`: how the list
    can be sorted, the same as on its page; None where it keeps its order.
    """

    needs: ClassVar[Mapping[str, str]] = {}
    asks: ClassVar[dict[str, tuple[str, ...]]] = {}
    asks_many: ClassVar[tuple[str, ...]] = ()
    orders: ClassVar[Ordering | None] = None
    pagination_class: type[KeysetPagination] | None = KeysetPagination
    request: ApiRequest

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if self.action not in (None, "metadata"):
            ids.require_possible(kwargs)
            queries.check(self, request)

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        if self.action is None or self.action == "metadata":  # method not mapped: DRF answers 405 by itself
            return
        if self.action not in self.needs:
            raise ImproperlyConfigured(f"{type(self).__name__}.needs lacks {self.action!r}")
        request.user.require(self.needs[self.action])  # type: ignore[union-attr]  # the middleware let only signed-in people in


class NumberedViewSet(PlatformViewSet):
    """A viewset of rows with numeric ids; other ids answer 404."""

    lookup_value_regex = r"[0-9]{1,18}"


class PlatformAPIView(APIView):
    """A single endpoint with one declared action for all its methods; `asks`: method → query parameters."""

    needs: ClassVar[str] = ""
    asks: ClassVar[dict[str, tuple[str, ...]]] = {}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        queries.check(self, request)

    def check_permissions(self, request: Request) -> None:
        super().check_permissions(request)
        if not self.needs:
            raise ImproperlyConfigured(f"{type(self).__name__}.needs is empty")
        request.user.require(self.needs)  # type: ignore[union-attr]  # the middleware let only signed-in people in


class VisibleField(PrimaryKeyRelatedField):
    """A reference the caller may name only if they can see it; else it "does not exist".

    With `to_use` it must be one they may work with, not only look at.
    """

    def __init__(self, model: type[Model], *, to_use: bool = False, **kwargs: Any) -> None:
        self.model = model
        self.to_use = to_use
        if not kwargs.get("read_only"):
            kwargs.setdefault("queryset", model._default_manager.none())
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, float):  # 1.5 would name row 1
            self.fail("incorrect_type", data_type="float")
        if isinstance(data, str) and data.isdecimal() and ids.number(data) is None:
            self.fail("does_not_exist", pk_value=data[:100])
        return super().to_internal_value(data)

    def get_queryset(self) -> QuerySet[Any]:
        rows: Any = self.model.objects  # type: ignore[attr-defined]  # our models have our querysets
        user = self.context["request"].user
        visible: QuerySet[Any] = rows.usable_by(user) if self.to_use else rows.visible_to(user)
        return visible


class StrictMixin:
    """For serializers of requests: a field they do not know, or that is read-only, is refused by its name."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            writable = {name for name, field in self.fields.items() if not field.read_only}  # type: ignore[attr-defined]  # mixed into serializers, which have fields
            unknown = [name for name in data if name not in writable]
            if unknown:
                errors = {str(name)[:100]: [_("This cannot be set here.")] for name in unknown[:20]}
                try:
                    super().to_internal_value(data)  # type: ignore[misc]  # mixed into serializers, which have it
                except exceptions.ValidationError as exc:
                    errors = {**exc.detail, **errors}  # type: ignore[dict-item]  # of a serializer it is a dictionary
                raise exceptions.ValidationError(errors)
        return super().to_internal_value(data)  # type: ignore[misc]  # mixed into serializers, which have it


def parse_request(
    serializer: Serializer[Any], check: Callable[..., object] | None = None, **context: object
) -> dict[str, Any]:
    """Return the values of a request.

    Args:
        check: where some values are wrong, it is asked what the service would refuse of the others as well: with
            those of them that it has parameters for, and `context`. Each may be left out.

    Raises:
        ValidationError: with everything that is wrong, by field.
    """
    if serializer.is_valid():
        return dict(serializer.validated_data)
    errors: dict[str, Any] = dict(serializer.errors)
    if check is not None and isinstance(serializer.initial_data, Mapping):
        try:
            check(**_right(serializer, set(inspect.signature(check).parameters)), **context)
        except NotAllowed:
            raise
        except DomainError as exc:
            errors = by_field(exc, errors)
    raise exceptions.ValidationError(errors)


def _right(serializer: Serializer[Any], names: set[str]) -> dict[str, Any]:
    """The values that were sent and are right by themselves."""
    values = {}
    for name, field in serializer.fields.items():
        if field.read_only or name not in names or name in serializer.errors or name not in serializer.initial_data:
            continue
        try:
            values[name] = field.run_validation(field.get_value(serializer.initial_data))
        except (exceptions.ValidationError, SkipField):
            continue
    return values


def by_field(exc: DomainError, errors: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the messages of an error, and of all errors with it, by the field that they name; after `errors`."""
    messages = {name: list(value) if isinstance(value, list) else value for name, value in (errors or {}).items()}
    shown = [refusal for refusal in exc.every if refusal.blamed or exc.others or errors]
    for refusal in shown:
        field_messages = messages.setdefault(refusal.blamed or api_settings.NON_FIELD_ERRORS_KEY, [])
        if isinstance(field_messages, list):
            field_messages.append(refusal.message)
    return messages


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Render every refusal as problem+json: {type, title, status, code, detail, …}."""
    request = context.get("request")
    kind = "application/problem+json"
    if getattr(exc, "status", getattr(exc, "status_code", 0)) == 403 or isinstance(exc, PermissionDenied):
        denials.report(request, str(getattr(exc, "code", getattr(exc, "default_code", "refused"))))
    if isinstance(exc, DomainError):
        facts = {"facts": exc.facts} if exc.facts else {}
        errors = {"errors": field_errors} if (field_errors := by_field(exc)) else {}
        body = problem(exc.status, exc.code, exc.message, request=request, **errors, **facts)
        return Response(body, status=exc.status, content_type=kind)
    if isinstance(exc, Http404):
        exc = exceptions.NotFound()
    elif isinstance(exc, PermissionDenied):
        exc = exceptions.PermissionDenied()
    answer = drf_handler(exc, context)
    if answer is None:
        return None
    if isinstance(exc, exceptions.ValidationError):
        detail = _("Some values are invalid.")
        body = problem(answer.status_code, "invalid", detail, request=request, errors=answer.data)
    else:
        code = getattr(exc, "default_code", "refused")
        data = answer.data if isinstance(answer.data, dict) else {}
        body = problem(answer.status_code, str(code), str(data.get("detail", exc)), request=request)
    answer.data = body
    answer.content_type = kind
    return answer
