"""API of programs of torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.http import ApiRequest
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import NotFound
from aiplatform.lib.idempotency import once
from inference.registry.serializers import ModelTaskOut
from inference.registry.torch_export import exports

if TYPE_CHECKING:
    from aiplatform.lib.api import NumberedViewSet as Base
else:
    Base = object


class TorchActs(Base):
    """Acts on a version: its program of torch.export. `export_torch` reaches versions that the caller may use."""

    @extend_schema(responses={(200, "application/octet-stream"): bytes})
    @action(detail=True, methods=["get"], url_path="torch")
    def torch(self, request: ApiRequest, pk: str) -> HttpResponseBase:
        """The version as a program of torch.export (.pt2), where a job has made it; the platform never opens it."""
        version = self.get_object()
        if (descriptor := exports.open_program(version)) is None:
            raise NotFound(_("This version has no torch program yet. Export it first."))
        return send_file(request._request, descriptor, exports.filename(version))

    @extend_schema(request=None, responses={202: ModelTaskOut})
    @torch.mapping.post
    @once
    def export_torch(self, request: ApiRequest, pk: str) -> Response:
        """Queue a job that rebuilds the network and exports it; `figures` hold its difference to the ONNX file."""
        task = exports.submit(user=request.user, version=self.get_object())
        return Response(ModelTaskOut(task).data, status=202)
