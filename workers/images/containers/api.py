"""`/api/v1/registry-logins/`: credentials of registries. The password goes in and never comes out."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet, object_action
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


class RegistryLoginViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    view_permission = change_permission = Action.JOBS_SUBMIT
    serializer_class, create_serializer_class, change_serializer_class = LoginOut, LoginIn, LoginEditIn
    forbids_change = True

    def service_check(self) -> Any:
        return logins.check if self.action == "create" else None

    def create_object(self, **values: Any) -> RegistryLogin:
        return logins.add(user=self.request.user, **values)

    def change_object(self, login: RegistryLogin, **values: Any) -> RegistryLogin:
        current = {"ca": login.ca, "visibility": login.visibility}
        return logins.change(login=login, by=self.request.user, **current | values)

    def delete_object(self, login: RegistryLogin) -> None:
        """Forget credentials; images that are fetched with them fail, and say why."""
        logins.delete(login=login, by=self.request.user)

    @object_action()
    def test(self, login: RegistryLogin) -> None:
        """Sign in at the registry with them; `works` says how that went."""
        logins.test(login)
