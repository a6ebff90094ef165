"""`/api/v1/auth/device/`: a program signs in by a browser (RFC 8628)."""

from __future__ import annotations

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api import serializers
from accounts.http import ApiRequest
from accounts.services import device_sign_in
from aiplatform.lib.api import parse_request


class DeviceView(APIView):
    """Starts a sign-in: the program shows the address and the code, and polls `auth/device/token/`."""

    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(request=serializers.DeviceSignInIn, responses={201: serializers.DeviceSignInOut})
    def post(self, request: ApiRequest) -> Response:
        fields = parse_request(serializers.DeviceSignInIn(data=request.data))
        sign_in = device_sign_in.start(name=fields["name"], address=request.META.get("REMOTE_ADDR", ""))
        page = request.build_absolute_uri(reverse("accounts:device"))
        body = {
            "device_code": sign_in.device_code,
            "user_code": sign_in.user_code,
            "verification_uri": page,
            "verification_uri_complete": f"{page}?code={sign_in.user_code}",
            "expires_in": device_sign_in.LIFETIME_S,
            "interval": device_sign_in.INTERVAL_S,
        }
        return Response(serializers.DeviceSignInOut(body).data, status=201, headers={"Cache-Control": "no-store"})


class DeviceTokenView(APIView):
    """Issues the token of an allowed sign-in; 400 `authorization_pending` until the user has answered."""

    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(request=serializers.DeviceSignInTokenIn, responses={201: serializers.TokenMade})
    def post(self, request: ApiRequest) -> Response:
        fields = parse_request(serializers.DeviceSignInTokenIn(data=request.data))
        token, secret = device_sign_in.redeem(fields["device_code"])
        body = {"token": secret, "prefix": token.prefix, "scope": token.scope, "expires_at": token.expires_at}
        return Response(serializers.TokenMade(body).data, status=201, headers={"Cache-Control": "no-store"})
