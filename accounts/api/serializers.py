"""Serializers of users, API tokens, roles and groups."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.relations import SlugRelatedField

from accounts.access.permissions import Action
from accounts.models import ApiToken, Role, User, UserGroup
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField

MAX_KEY_BINDINGS = 60  # actions of the annotator that a user can assign keys to


class MeOut(OutMixin, serializers.ModelSerializer):
    """The authenticated user, with preferences, roles and permitted actions."""

    actions = serializers.SerializerMethodField()
    roles: SlugRelatedField[Role] = SlugRelatedField("name", many=True, read_only=True)

    class Meta:
        model = User
        fields = [
            "id",
            "username",
            "nickname",
            "email",
            "phone",
            "language",
            "time_zone",
            "theme",
            "refresh_s",
            "root_allowed",
            "root_inside",
            "annotator_keys",
            "roles",
            "actions",
        ]

    def get_actions(self, user: User) -> list[str]:
        return sorted(user.actions())


class MeIn(StrictMixin, serializers.ModelSerializer):
    """Fields that users can change in their own account; requests with other fields are rejected."""

    language = serializers.ChoiceField(choices=["", "en", "zh-hans"], required=False)
    theme = serializers.ChoiceField(choices=["", "light", "dark"], required=False)
    refresh_s = serializers.IntegerField(min_value=1, max_value=300, required=False)
    root_inside = serializers.BooleanField(required=False, help_text="Requires `root_allowed`.")
    annotator_keys = serializers.DictField(  # action → keys: {"redo": ["Ctrl+Shift+Z"]}
        child=serializers.ListField(child=serializers.CharField(max_length=30), max_length=9), required=False
    )

    class Meta:
        model = User
        fields = [
            "nickname",
            "email",
            "phone",
            "language",
            "time_zone",
            "theme",
            "refresh_s",
            "root_inside",
            "annotator_keys",
        ]

    def validate_annotator_keys(self, value: dict[str, list[str]]) -> dict[str, list[str]]:
        """Check the keybindings of the annotator: a key is assigned to at most one action."""
        if len(value) > MAX_KEY_BINDINGS or any(not name.isalpha() or len(name) > 20 for name in value):
            raise serializers.ValidationError(_("Expected a list of keys."))
        all_keys = [key for keys in value.values() for key in keys]
        if duplicates := sorted({key for key in all_keys if all_keys.count(key) > 1}):
            raise serializers.ValidationError(
                _("A key can be assigned only once: %(keys)s.") % {"keys": ", ".join(duplicates)}
            )
        return value

    def validate_time_zone(self, value: str) -> str:
        from zoneinfo import available_timezones  # noqa: PLC0415 - reads a folder, rarely needed

        if value and value not in available_timezones():
            raise serializers.ValidationError(_("Invalid time zone. Enter a name such as Asia/Shanghai."))
        return value


class TokenIn(StrictMixin, serializers.Serializer):
    """Credentials and settings of an API token to create."""

    username = serializers.CharField(max_length=50)
    password = serializers.CharField(max_length=128, trim_whitespace=False)
    code = serializers.CharField(max_length=40, required=False)  # required if the user has a second factor
    new_password = serializers.CharField(
        max_length=128,
        trim_whitespace=False,
        required=False,
        help_text="Replaces a temporary password, which issues no token.",
    )
    name = serializers.CharField(max_length=50, default="api")
    scope = serializers.ChoiceField(choices=ApiToken.Scope.choices, default=ApiToken.Scope.WRITE)
    days = serializers.IntegerField(min_value=1, max_value=3650, allow_null=True, default=90)  # None: no expiry


class DeviceSignInIn(StrictMixin, serializers.Serializer):
    """A program that a user signs in with the browser."""

    name = serializers.CharField(max_length=50, default="aip", help_text="Name of the token, shown to the user.")


class DeviceSignInOut(serializers.Serializer):
    """Codes and addresses of a sign-in, with the names of RFC 8628."""

    device_code = serializers.CharField(help_text="Secret of the program, sent with each poll.")
    user_code = serializers.CharField(help_text="Code that the user compares.")
    verification_uri = serializers.CharField()
    verification_uri_complete = serializers.CharField(help_text="The address with the code.")
    expires_in = serializers.IntegerField(help_text="Seconds.")
    interval = serializers.IntegerField(help_text="Least number of seconds between two polls.")


class DeviceSignInTokenIn(StrictMixin, serializers.Serializer):
    device_code = serializers.CharField(max_length=100)


class TokenMade(serializers.Serializer):
    """A new API token. The secret is returned only once, in this response."""

    token = serializers.CharField()
    prefix = serializers.CharField()
    scope = serializers.CharField()
    expires_at = serializers.DateTimeField(allow_null=True)


class RoleOut(OutMixin, serializers.ModelSerializer):
    class Meta:
        model = Role
        fields = ["id", "name", "description", "preset", "actions"]


class RoleIn(StrictMixin, serializers.Serializer):
    name = serializers.CharField(max_length=50)
    description = serializers.CharField(max_length=200, allow_blank=True, default="")
    actions = serializers.ListField(child=serializers.ChoiceField(choices=[action.value for action in Action]))


class GroupOut(OutMixin, serializers.ModelSerializer):
    roles: SlugRelatedField[Role] = SlugRelatedField("name", many=True, read_only=True)
    members: SlugRelatedField[User] = SlugRelatedField("username", source="users", many=True, read_only=True)

    class Meta:
        model = UserGroup
        fields = ["id", "name", "description", "roles", "members", "created_at"]


class GroupIn(StrictMixin, serializers.Serializer):
    name = serializers.CharField(max_length=50)
    description = serializers.CharField(max_length=200)
    roles = serializers.ListField(child=VisibleField(Role), allow_empty=False)
    members = serializers.ListField(child=VisibleField(User), default=list)


class PersonOut(OutMixin, serializers.ModelSerializer):
    """A user, as administrators see the account."""

    roles: SlugRelatedField[Role] = SlugRelatedField("name", many=True, read_only=True)
    groups: SlugRelatedField[UserGroup] = SlugRelatedField("name", source="user_groups", many=True, read_only=True)

    class Meta:
        model = User
        fields = [
            "id",
            "username",
            "nickname",
            "email",
            "phone",
            "state",
            "is_active",
            "root_allowed",
            "roles",
            "groups",
            "date_joined",
            "last_login",
        ]


class PersonMade(PersonOut):
    """A new account."""

    password = serializers.CharField(required=False, help_text="Only where the platform generated it.")

    class Meta(PersonOut.Meta):
        fields = [*PersonOut.Meta.fields, "password"]


class PersonIn(StrictMixin, serializers.Serializer):
    """A new account. Without a password the platform generates one and returns it once."""

    username = serializers.CharField(max_length=50)
    nickname = serializers.CharField(max_length=50, allow_blank=True, default="", help_text="Default: the username.")
    email = serializers.EmailField(allow_blank=True, default="")
    phone = serializers.CharField(max_length=30, allow_blank=True, default="")
    password = serializers.CharField(max_length=128, trim_whitespace=False, required=False)
    roles = serializers.ListField(child=VisibleField(Role), allow_empty=False)
    groups = serializers.ListField(child=VisibleField(UserGroup), default=list)
    clusters = serializers.ListField(child=serializers.IntegerField(), default=list)


class PersonChange(StrictMixin, serializers.Serializer):
    """Changes to an account; fields that are absent keep their values."""

    nickname = serializers.CharField(max_length=50, allow_blank=True, required=False)
    email = serializers.EmailField(allow_blank=True, required=False)
    phone = serializers.CharField(max_length=30, allow_blank=True, required=False)
    is_active = serializers.BooleanField(required=False)
    root_allowed = serializers.BooleanField(
        required=False, help_text="Whether jobs of the user may run as root in their containers."
    )
    roles = serializers.ListField(child=VisibleField(Role), required=False)
    groups = serializers.ListField(child=VisibleField(UserGroup), required=False)
    clusters = serializers.ListField(child=serializers.IntegerField(), required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(_("Nothing to change."))
        return attrs
