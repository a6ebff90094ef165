"""The OpenAPI schema: query parameters come from what a view declares in `asks`."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

from django.core.exceptions import FieldDoesNotExist
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework.fields import empty

from aiplatform.lib.ordering import PARAMETER


class PlatformSchema(AutoSchema):
    """drf-spectacular's reading of a view, plus names in `asks`, how lists are sorted, and errors."""

    def _map_serializer_field(self, field: Any, direction: Any, bypass_extensions: bool = False) -> Any:
        """Describe a field; in responses it may be null where the column or the type hint of the property says so."""
        has_default = field.default is not empty
        if direction != "response" or field.allow_null or has_default or not _may_be_null(field):
            return super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]  # of theirs
        field.allow_null = True
        try:
            return super()._map_serializer_field(field, direction, bypass_extensions)  # type: ignore[no-untyped-call]  # of theirs
        finally:
            field.allow_null = False

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        """The responses of the view, and what each answers where it refuses."""
        return {**super()._get_response_bodies(direction), "default": {"$ref": "#/components/responses/Problem"}}

    def get_override_parameters(self) -> list[Any]:
        view: Any = self.view
        action = getattr(view, "action", None) or self.method.lower()
        names = getattr(view, "asks", {}).get(action, ())
        parameters = [OpenApiParameter(name, str, many=name in getattr(view, "asks_many", ())) for name in names]
        orders = getattr(view, "orders", None)
        if orders is not None and action == "list":
            description = "How the list is sorted; “-” in front: falling."
            parameters.append(OpenApiParameter(PARAMETER, str, enum=orders.words, description=description))
        return parameters


def _may_be_null(field: Any) -> bool:
    """Whether a step from the model of a serializer to the value of a field may be None."""
    kind: Any = getattr(getattr(field.parent, "Meta", None), "model", None)
    for name in getattr(field, "source_attrs", None) or ():
        if kind is None:
            return False
        try:
            column = kind._meta.get_field(name)
        except (AttributeError, FieldDoesNotExist):
            hint = _hint(getattr(kind, name, None))
            if type(None) in get_args(hint):
                return True
            kind = hint if isinstance(hint, type) else None
            continue
        if column.concrete and column.null:
            return True
        kind = column.related_model
    return False


def _hint(attribute: Any) -> Any:
    """The type of a property; None where it is not one or says nothing."""
    function = getattr(attribute, "fget", None) or getattr(attribute, "func", None)
    try:
        return get_type_hints(function).get("return") if function else None
    except NameError:  # a name that only type checkers import
        return None


class BearerToken(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular's metaclass is untyped
    """How API tokens are sent."""

    target_class = "accounts.sign_in.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "aip_…"}
