"""`/api/v1/registry-logins/`: credentials of registries. The password goes in and never comes out."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, parse_request
from workers.images.containers import logins
from workers.images.models import RegistryLogin, Visibility


class LoginIn(StrictMixin, serializers.Serializer[Any]):
    """Credentials; `ca` is a certificate authority in PEM, believed besides the machine's own."""

    host = serializers.CharField(max_length=255)
    username = serializers.CharField(max_length=200, default="", allow_blank=True)
    password = serializers.CharField(
        max_length=4000, default="", allow_blank=True, write_only=True, trim_whitespace=False
    )
    ca = serializers.CharField(max_length=logins.MAX_CA_LENGTH, default="", allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, default=Visibility.PRIVATE)


class LoginEditIn(StrictMixin, serializers.Serializer[Any]):
    password = serializers.CharField(
        max_length=4000, required=False, allow_blank=True, write_only=True, trim_whitespace=False,
        help_text="Empty or left out: the one that is there stays.",
    )  # fmt: skip
    ca = serializers.CharField(max_length=logins.MAX_CA_LENGTH, required=False, allow_blank=True)
    visibility = serializers.ChoiceField(Visibility.choices, required=False)


class LoginOut(OutMixin, serializers.ModelSerializer[RegistryLogin]):
    """Credentials without the password. `works` is null until they were tested; `message` says why they do not."""

    owner = serializers.CharField(source="owner.username")
    works = serializers.SerializerMethodField()
    message = serializers.SerializerMethodField()
    used_by = serializers.IntegerField(source="used", help_text="How many images need them.")

    class Meta:
        model = RegistryLogin
        fields = [
            "id", "host", "username", "ca", "owner", "visibility", "created_at", "tested_at", "works", "message",
            "used_by",
        ]  # fmt: skip
        read_only_fields = fields

    def get_works(self, login: RegistryLogin) -> bool | None:
        return None if login.tested_at is None else not login.message

    def get_message(self, login: RegistryLogin) -> str:
        return str(login.message)


class RegistryLoginViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    needs = {
        "list": Action.JOBS_SUBMIT,
        "retrieve": Action.JOBS_SUBMIT,
        "create": Action.JOBS_SUBMIT,
        "partial_update": Action.JOBS_SUBMIT,
        "destroy": Action.JOBS_SUBMIT,
        "test": Action.JOBS_SUBMIT,
    }
    serializer_class = LoginOut

    def get_queryset(self) -> Any:
        return RegistryLogin.objects.visible_to(self.request.user).for_list()

    def _answer(self, login: RegistryLogin, status: int = 200) -> Response:
        return Response(LoginOut(self.get_queryset().get(pk=login.pk)).data, status)

    @extend_schema(request=LoginIn, responses={201: LoginOut})
    def create(self, request: ApiRequest) -> Response:
        """Keep credentials of a registry, sealed."""
        return self._answer(
            logins.add(user=request.user, **parse_request(LoginIn(data=request.data), logins.check)), 201
        )

    @extend_schema(request=LoginEditIn, responses=LoginOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        login = self._own(request, pk)
        values = {"ca": login.ca, "visibility": login.visibility} | parse_request(LoginEditIn(data=request.data))
        return self._answer(logins.change(login=login, by=request.user, **values))

    @extend_schema(responses={204: None})
    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Forget credentials; images that are fetched with them fail, and say why."""
        logins.delete(login=self._own(request, pk), by=request.user)
        return Response(status=204)

    @extend_schema(request=None, responses=LoginOut)
    @action(detail=True, methods=["post"])
    def test(self, request: ApiRequest, pk: str) -> Response:
        """Sign in at the registry with them; `works` says how that went."""
        login = self._own(request, pk)
        logins.test(login)
        return self._answer(login)

    def _own(self, request: ApiRequest, pk: str) -> RegistryLogin:
        """Credentials that the caller may change: 404 when they may not see them, 403 when they may only use them."""
        login: RegistryLogin = get_object_or_404(RegistryLogin.objects.visible_to(request.user), pk=pk)
        if not RegistryLogin.objects.editable_by(request.user).filter(pk=login.pk).exists():
            self.permission_denied(request)
        return login
