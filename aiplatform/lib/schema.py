"""The OpenAPI schema: query parameters come from what a view declares in `asks`."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter


class PlatformSchema(AutoSchema):
    """drf-spectacular's reading of a view, plus the names in `asks` that nobody described in words."""

    def get_override_parameters(self) -> list[Any]:
        view: Any = self.view
        action = getattr(view, "action", None) or self.method.lower()
        names = getattr(view, "asks", {}).get(action, ())
        return [OpenApiParameter(name, str, many=name in getattr(view, "asks_many", ())) for name in names]


class BearerToken(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # drf-spectacular's metaclass is untyped
    """How API tokens are sent."""

    target_class = "accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "bearerFormat": "aip_…"}
