"""API of a kind of object by declaration: one serializer, list filters, and actions that call services."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ClassVar

from django.db.models import Model
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.fields import empty
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from aiplatform.lib import idempotency
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, parse_request
from aiplatform.lib.schema import PlatformSchema
from aiplatform.objects.filters import ObjectFilters

READING, WRITING = ("list", "retrieve"), ("create", "update", "partial_update")


class ObjectSerializer(OutMixin, StrictMixin, serializers.ModelSerializer[Any]):
    """Reads, creates and changes an object: fields, limits and defaults are those of the model.

    Requests may set the fields that `writable` names, those in `create_only` at creation alone.
    """

    writable: ClassVar[tuple[str, ...]] = ()
    create_only: ClassVar[tuple[str, ...]] = ()

    owner = serializers.CharField(source="owner.username", read_only=True)

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        locked = self.create_only if self.partial else ()
        for name, field in fields.items():
            field.read_only = name not in self.writable or name in locked
            if self.partial:
                field.default = empty
        return fields

    def get_validators(self) -> list[Any]:
        """None: what several columns must fulfil together is checked by the service."""
        return []

    def build_standard_field(self, field_name: str, model_field: Any) -> Any:
        """A field with the default of its column, which is an empty text where the column may be one."""
        kind, options = super().build_standard_field(field_name, model_field)
        may_be_empty = options.get("allow_blank") and not model_field.null
        if (model_field.has_default() or may_be_empty) and not callable(model_field.default):
            options["default"] = model_field.get_default()
        return kind, options


class ObjectSchema(PlatformSchema):
    """Describes what an action takes and answers from its declaration."""

    def get_request_serializer(self) -> Any:
        view: Any = self.view
        if view.action in WRITING:
            return view.get_input_serializer()
        method = getattr(view, view.action)
        return method.takes if hasattr(method, "takes") else super().get_request_serializer()

    def get_response_serializers(self) -> Any:
        view: Any = self.view
        status = getattr(getattr(view, view.action), "status", None)
        return {status: view.get_serializer()} if status else super().get_response_serializers()


def object_action(
    takes: type[serializers.Serializer[Any]] | None = None, *, status: int = 200, once: bool = False, **routing: Any
) -> Callable[[Any], Any]:
    """Declare a method as `POST …/ID/NAME/`: `method(row, **values)` calls a service; the object is answered.

    Args:
        takes: serializer of the body; None: there is no body.
        status: of the response.
        once: honors `Idempotency-Key`.
        routing: as of `rest_framework.decorators.action`.
    """

    def declare(method: Any) -> Any:
        @wraps(method)
        def respond(self: Any, request: Any, pk: str, **kwargs: Any) -> Response:
            row = self.get_object()
            values = parse_request(takes(data=request.data, context=self.get_serializer_context())) if takes else {}
            return self.answer(method(self, row, **kwargs, **values) or row, status)

        view: Any = idempotency.once(respond) if once else respond
        view.takes, view.status = takes, status  # read by ObjectSchema
        return action(detail=True, methods=["post"], **routing)(view)

    return declare


class ObjectBase(NumberedViewSet):
    """Objects of a kind, without routes; see `ObjectViewSet`.

    Each action requires `view_permission` where it only reads the list or an object, `change_permission` otherwise;
    `needs` says where it differs. Actions that write reach only objects that the caller may change.
    """

    schema = ObjectSchema()
    serializer_class: type[serializers.BaseSerializer[Any]]
    create_serializer_class: ClassVar[type[serializers.BaseSerializer[Any]] | None] = None
    change_serializer_class: ClassVar[type[serializers.BaseSerializer[Any]] | None] = None
    list_serializer_class: ClassVar[type[serializers.BaseSerializer[Any]] | None] = None
    filters: ClassVar[type[ObjectFilters] | None] = None
    view_permission: ClassVar[str]
    change_permission: ClassVar[str]
    model: ClassVar[type[Model]]
    reach: ClassVar[Mapping[str, str]] = {}  # action → method of the queryset; for writing, `editable_by`
    object_rows: ClassVar[str] = "for_list"  # the method of the queryset that reads what one object shows
    forbids_change = False  # an object that the caller may see and not change: answer 403 in place of 404

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "serializer_class" not in vars(cls):
            return
        cls.model = cls.serializer_class.Meta.model  # type: ignore[attr-defined]  # of every model serializer
        cls.queryset = cls.model.objects.none()  # type: ignore[attr-defined]  # our models have our querysets
        names = [name for name in (*READING, *WRITING, "destroy") if hasattr(cls, name)]
        extra: list[Any] = cls.get_extra_actions()
        names += [name for method in extra for name in method.mapping.values()]
        standard = {name: cls.view_permission if name in READING else cls.change_permission for name in names}
        cls.needs = {**standard, **cls.needs}
        if cls.filters is not None:
            cls.orders = cls.filters.orders
            cls.asks = {"list": tuple(cls.filters.base_filters), **cls.asks}

    def get_queryset(self) -> Any:
        """Rows that the caller may see, of the list those that pass its filters."""
        rows: Any = self.model.objects.visible_to(self.request.user)  # type: ignore[attr-defined]  # as above
        if self.action == "list":
            return (self.filters.for_api(self.request, rows).qs if self.filters else rows).for_list()
        writes = self.request.method not in SAFE_METHODS and not self.forbids_change
        if which := self.reach.get(self.action, "editable_by" if writes else ""):
            rows = getattr(rows, which)(self.request.user)
        return getattr(rows, self.object_rows)()

    def get_object(self) -> Any:
        row = super().get_object()
        if self.request.method not in SAFE_METHODS and self.forbids_change and self.action not in self.reach:
            editable = self.model.objects.editable_by(self.request.user)  # type: ignore[attr-defined]  # as above
            if not editable.filter(pk=row.pk).exists():
                self.permission_denied(self.request)
        return row

    def get_serializer_class(self) -> Any:
        return (self.action == "list" and self.list_serializer_class) or self.serializer_class

    def service_check(self) -> Callable[..., object] | None:
        """What the service would refuse of valid fields, judged where other fields are refused; see `sent`."""
        return None

    def get_input_serializer(self, **options: Any) -> Any:
        """The serializer of a body that creates an object or changes some of its fields."""
        partial = self.action == "partial_update"
        kind = self.change_serializer_class if partial else self.create_serializer_class
        standard: dict[str, Any] = {"context": self.get_serializer_context(), "partial": partial and kind is None}
        return (kind or self.serializer_class)(**standard, **options)

    def values(self) -> dict[str, Any]:
        """The checked body of a request that creates or changes an object."""
        return parse_request(self.get_input_serializer(data=self.request.data), self.service_check())

    def answer(self, row: Any, status: int = 200) -> Response:
        """The object, read again with everything that the list reads."""
        return Response(self.get_serializer(self.get_queryset().get(pk=row.pk)).data, status=status)


class ObjectViewSet(ListModelMixin, RetrieveModelMixin, ObjectBase):
    """List and one object of a kind; `CreateObject`, `ChangeObject`, `ReplaceObject`, `DeleteObject` add others."""


class CreateObject:
    """`POST`: `create_object(**values)` calls the service."""

    @idempotency.once
    def create(self: Any, request: Any) -> Response:
        return self.answer(self.create_object(**self.values()), 201)

    create.status = 201  # type: ignore[attr-defined]  # read by ObjectSchema


class ChangeObject:
    """`PATCH`: `change_object(row, **values)` calls the service with the fields that were sent."""

    def partial_update(self: Any, request: Any, pk: str) -> Response:
        row = self.get_object()
        return self.answer(self.change_object(row, **self.values()) or row)


class ReplaceObject:
    """`PUT`: `replace_object(row, **values)` calls the service with all fields."""

    def update(self: Any, request: Any, pk: str) -> Response:
        row = self.get_object()
        return self.answer(self.replace_object(row, **self.values()) or row)


class DeleteObject:
    """`DELETE`: `delete_object(row)` calls the service."""

    def destroy(self: Any, request: Any, pk: str) -> Response:
        self.delete_object(self.get_object())
        return Response(status=204)
