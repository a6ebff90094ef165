"""The API of people: the caller, tokens, and all accounts for administrators."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth import authenticate
from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access.permissions import Action
from accounts.api import serializers
from accounts.http import ApiRequest
from accounts.models import Role, User, UserGroup
from accounts.services import cluster_membership, passwords, people, roles, root_inside, second_factor, tokens
from accounts.sign_in import lockout
from aiplatform.lib.api import PlatformAPIView, parse_request
from aiplatform.objects.filters import ObjectFilters, Words
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet, ReplaceObject


class TokenView(APIView):
    """Issues an API token for a name and a password. Failures count as on the sign-in page."""

    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(request=serializers.TokenIn, responses={201: serializers.TokenMade})
    def post(self, request: ApiRequest) -> Response:
        serializer = serializers.TokenIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        user = authenticate(request._request, username=fields["username"], password=fields["password"])
        if not isinstance(user, User):
            message = getattr(request._request, "provider_message", "")
            raise AuthenticationFailed(message or _("Unknown username or wrong password."))
        if second_factor.is_on(user):
            self._ask_for_code(request, user, fields.get("code", ""))
        if user.must_change_password:
            self._replace_password(user, fields.get("new_password", ""))
        expires_in = timedelta(days=fields["days"]) if fields["days"] else None
        token, secret = tokens.issue(user=user, name=fields["name"], scope=fields["scope"], expires_in=expires_in)
        body = {"token": secret, "prefix": token.prefix, "scope": token.scope, "expires_at": token.expires_at}
        return Response(serializers.TokenMade(body).data, status=201, headers={"Cache-Control": "no-store"})

    @staticmethod
    def _replace_password(user: User, password: str) -> None:
        if not password:
            message = _("This is a temporary password. Send your own in the field “new_password”.")
            raise passwords.ChangeNeeded(message)
        try:
            passwords.change(user=user, password=password, by=user)
        except passwords.WeakPassword as exc:
            raise passwords.WeakPassword(exc.message, field="new_password") from exc

    @staticmethod
    def _ask_for_code(request: Request, user: User, code: str) -> None:
        """Check the second factor; a wrong code counts like a wrong password."""
        if lockout.is_paused(request._request, user.username):
            raise Throttled(wait=lockout.pause_s(), detail=lockout.sentence())
        try:
            second_factor.check(user, code)
        except second_factor.WrongCode as exc:
            if code:
                lockout.count_failure(request._request, user.username)
            message = exc.message if code else _("Send the code of your second factor in the field “code”.")
            raise second_factor.Needed(message) from exc

    def get_authenticate_header(self, request: Request) -> str:
        return "Bearer"


class MeView(PlatformAPIView):
    """The caller's own account."""

    needs = Action.SELF_MANAGE

    @extend_schema(responses=serializers.MeOut)
    def get(self, request: ApiRequest) -> Response:
        return Response(serializers.MeOut(request.user).data)

    @extend_schema(request=serializers.MeIn, responses=serializers.MeOut)
    def patch(self, request: ApiRequest) -> Response:
        serializer = serializers.MeIn(request.user, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        with transaction.atomic():
            if "root_inside" in serializer.validated_data:
                root_inside.switch(request.user, on=serializer.validated_data.pop("root_inside"))
            serializer.save()
        return Response(serializers.MeOut(request.user).data)


class PersonFilters(ObjectFilters):
    q = Words("username", "nickname", "phone", "email")


class PersonViewSet(ChangeObject, ObjectViewSet):
    view_permission = change_permission = Action.PEOPLE_MANAGE
    serializer_class, change_serializer_class = serializers.PersonOut, serializers.PersonChange
    filters = PersonFilters

    def get_queryset(self) -> Any:
        return super().get_queryset().prefetch_related("roles", "user_groups__roles")

    @extend_schema(request=serializers.PersonIn, responses={201: serializers.PersonMade})
    def create(self, request: ApiRequest) -> Response:
        serializer = serializers.PersonIn(data=request.data, context=self.get_serializer_context())
        facts = parse_request(serializer, people.check_free)
        chosen = facts.pop("clusters")
        made_here = "password" not in facts
        facts.setdefault("password", passwords.generate())
        with transaction.atomic():
            person = people.create(**facts, by=request.user)
            cluster_membership.replace(person, chosen, by=request.user)
        body = self.get_serializer(person).data
        if made_here:
            body["password"] = facts["password"]
        return Response(body, status=201, headers={"Cache-Control": "no-store"})

    @transaction.atomic
    def change_object(self, person: User, **wanted: Any) -> None:
        by: Any = self.request.user
        if facts := {key: wanted[key] for key in ("nickname", "email", "phone") if key in wanted}:
            people.update(user=person, **facts, by=by)
        if "roles" in wanted or "groups" in wanted:
            people.set_rights(
                user=person,
                roles=wanted.get("roles", person.roles.all()),
                groups=wanted.get("groups", person.user_groups.all()),
                by=by,
            )
        if "clusters" in wanted:
            cluster_membership.replace(person, wanted["clusters"], by=by)
        if "root_allowed" in wanted:
            root_inside.allow(person, allowed=wanted["root_allowed"], by=by)
        if "is_active" in wanted:
            people.set_active(user=person, active=wanted["is_active"], by=by)


class RoleViewSet(ReplaceObject, CreateObject, DeleteObject, ObjectViewSet):
    view_permission = change_permission = Action.PEOPLE_MANAGE
    serializer_class, create_serializer_class = serializers.RoleOut, serializers.RoleIn

    def service_check(self) -> Any:
        return partial(roles.check_role_name, role=self.get_object() if self.action == "update" else None)

    def create_object(self, **values: Any) -> Role:
        return roles.create(**values, by=self.request.user)

    def replace_object(self, role: Role, **values: Any) -> Role:
        return roles.update(role=role, **values, by=self.request.user)

    def delete_object(self, role: Role) -> None:
        roles.delete(role=role, by=self.request.user)


class GroupViewSet(ReplaceObject, CreateObject, DeleteObject, ObjectViewSet):
    view_permission = change_permission = Action.PEOPLE_MANAGE
    serializer_class, create_serializer_class = serializers.GroupOut, serializers.GroupIn

    def get_queryset(self) -> Any:
        return super().get_queryset().prefetch_related("roles", "users")

    def service_check(self) -> Any:
        return partial(roles.check_group_name, group=self.get_object() if self.action == "update" else None)

    def create_object(self, **values: Any) -> UserGroup:
        return roles.create_group(**values, by=self.request.user)

    def replace_object(self, group: UserGroup, **values: Any) -> UserGroup:
        return roles.update_group(group=group, **values, by=self.request.user)

    def delete_object(self, group: UserGroup) -> None:
        roles.delete_group(group=group, by=self.request.user)
