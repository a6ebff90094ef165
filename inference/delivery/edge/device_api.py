"""What devices call: they have no account, but a token of their own (`Authorization: Edge aipe_…`)."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from aiplatform.lib.api import StrictMixin
from aiplatform.lib.downloads import attachment, send_file
from aiplatform.lib.errors import NotFound
from aiplatform.lib.parsers import CarefulMultiPartParser
from inference.delivery.edge import agent_download, fleet, logs, packages, sampling
from inference.delivery.edge.models import EdgeDevice
from inference.serving.server import image_sampling

SCHEME = "Edge "
NO_STORE = {"Cache-Control": "no-store"}


class EdgeEnrolIn(StrictMixin, serializers.Serializer):
    """A one-time code, and what the device is."""

    code = serializers.CharField(max_length=100)
    hardware = serializers.DictField(required=False, default=dict)
    agent = serializers.IntegerField(required=False, default=1)


class EdgeReportIn(serializers.Serializer):
    """What came of a round of the agent; older and newer agents may say more."""

    outcome = serializers.CharField(max_length=20)
    detail = serializers.CharField(max_length=300, required=False, default="", allow_blank=True)
    differs = serializers.DictField(
        required=False, default=dict, help_text="Of `answers_differ`: sample, samples, kind, largest, tolerance."
    )
    package = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)
    number = serializers.IntegerField(required=False, default=0, min_value=0)
    counters = serializers.DictField(required=False, default=dict)
    hardware = serializers.DictField(required=False, default=dict)
    speed = serializers.DictField(required=False, default=dict)
    samples = serializers.CharField(max_length=10, required=False, default="", allow_blank=True)
    log = serializers.ListField(
        required=False, default=list, max_length=logs.MAX_LINES, help_text="New lines: [ms since 1970, text]."
    )


class EdgeSampleIn(serializers.Serializer):
    """An image that a rule stored, with the answers of the device."""

    image = serializers.FileField(help_text="A JPEG of at most 2 MiB.")
    answers = serializers.CharField(max_length=1_000_000, help_text="`predictions` of the answer, as JSON.")
    why = serializers.ChoiceField(choices=[image_sampling.LOW, image_sampling.CHANCE])
    package = serializers.CharField(max_length=64, required=False, default="", allow_blank=True)

    def validate_answers(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise serializers.ValidationError(_("Invalid JSON.")) from None


class DeviceView(APIView):
    """A route for devices alone."""

    authentication_classes = []
    permission_classes = [AllowAny]

    @staticmethod
    def device(request: Request) -> EdgeDevice:
        """Return the device of the token of a request.

        Raises:
            NotKnown.
        """
        authorization = request.headers.get("Authorization", "")
        return fleet.device_for_token(
            authorization.removeprefix(SCHEME).strip() if authorization.startswith(SCHEME) else ""
        )


class EnrolView(DeviceView):
    """Exchanges the one-time code of a device for a token."""

    @extend_schema(request=EdgeEnrolIn, responses={201: OpenApiTypes.OBJECT})
    def post(self, request: Request) -> Response:
        form = EdgeEnrolIn(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        return Response(fleet.enrol(code=values["code"], hardware=values["hardware"]), status=201, headers=NO_STORE)


class WordView(DeviceView):
    """What the device should run, signed. The ETag stays for an hour while nothing changes."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT, 304: None})
    def get(self, request: Request) -> HttpResponseBase:
        body = json.dumps(fleet.word(self.device(request)), sort_keys=True).encode()
        etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
        if request.headers.get("If-None-Match") == etag:
            return HttpResponse(status=304, headers={"ETag": etag, **NO_STORE})
        return HttpResponse(body, content_type="application/json", headers={"ETag": etag, **NO_STORE})


class PackageView(DeviceView):
    """The bytes of a package that the device's group runs; a cut download goes on with Range."""

    @extend_schema(responses={(200, "application/zip"): OpenApiTypes.BINARY})
    def get(self, request: Request, sha256: str) -> HttpResponseBase:
        if not fleet.may_fetch(self.device(request), sha256):
            raise NotFound(_("This device has no such package."))
        try:
            descriptor = os.open(packages.package_file(sha256), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            raise NotFound(_("The package no longer exists. Release the version again.")) from None
        return send_file(request._request, descriptor, f"{sha256[:12]}.zip")


class ReportView(DeviceView):
    """What the device did, and how it is."""

    @extend_schema(request=EdgeReportIn, responses={204: None})
    def post(self, request: Request) -> Response:
        device = self.device(request)
        form = EdgeReportIn(data=request.data)
        form.is_valid(raise_exception=True)
        values: dict[str, Any] = form.validated_data
        fleet.report(device, values)
        return Response(status=204)


class SampleView(DeviceView):
    """A picture that the device kept for annotation; sent once more, it changes nothing."""

    parser_classes = [CarefulMultiPartParser]

    @extend_schema(request={"multipart/form-data": EdgeSampleIn}, responses={204: None})
    def post(self, request: Request) -> Response:
        device = self.device(request)
        form = EdgeSampleIn(data=request.data)
        form.is_valid(raise_exception=True)
        values = form.validated_data
        picture = values.pop("image").read(sampling.MAX_BYTES + 1)
        sampling.store(device=device, picture=picture, **values)
        return Response(status=204)


@login_not_required
@require_safe
def agent(request: HttpRequest) -> HttpResponse:
    """The agent: the same for everybody, and no secret."""
    headers = {"Content-Disposition": attachment(agent_download.NAME), "Cache-Control": "no-cache"}
    return HttpResponse(agent_download.agent(), content_type="application/zip", headers=headers)
