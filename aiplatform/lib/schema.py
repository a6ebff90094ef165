"""The OpenAPI schema: query parameters come from what a view declares in `asks`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from aiplatform.lib.ordering import PARAMETER


class PlatformSchema(AutoSchema):
    """drf-spectacular's reading of a view, plus the names in `asks` that nobody described, and how lists are sorted."""

    def get_override_parameters(self) -> list[Any]:
        view: Any = self.view
        action = getattr(view, "action", None) or self.method.lower()
        names = getattr(view, "asks", {}).get(action, ())
        found = [OpenApiParameter(name, str, many=name in getattr(view, "asks_many", ())) for name in names]
        orders = getattr(view, "orders", None)
        if orders is not None and action == "list":
            said = "How the list is sorted; “-” in front: falling."
            found.append(OpenApiParameter(PARAMETER, str, enum=orders.words, description=said))
        return found


class BearerToken(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular's metaclass is untyped
    """How API tokens are sent."""

    target_class = "accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "aip_…"}
