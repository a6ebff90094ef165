"""What jobs with somebody's own code take by the API: code in one of four ways, data, variables, secrets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from accounts.models import User
from aiplatform.lib.api import VisibleField
from aiplatform.lib.errors import Refusals
from datasets.models import DatasetVersion, Upload
from training.programs import snapshots
from training.programs.models import CodeSnapshot

CODE_FIELDS = ("code_upload", "code_archive", "home_path")


class InputsIn(serializers.Serializer[Any]):
    code = VisibleField(CodeSnapshot, required=False, allow_null=True, default=None)
    code_upload = VisibleField(Upload, required=False, allow_null=True, default=None)
    code_archive = serializers.FileField(required=False, allow_null=True, default=None)
    home_path = serializers.CharField(max_length=255, default="", allow_blank=True)
    datasets = serializers.ListField(child=VisibleField(DatasetVersion, to_use=True), default=list)
    variables = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), default=dict
    )
    secrets = serializers.DictField(
        child=serializers.CharField(trim_whitespace=False, allow_blank=True),
        default=dict,
        help_text="Kept encrypted, never answered. An empty value takes your stored secret of that name.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        attrs = super().validate(attrs)
        ways = [name for name in ("code", *CODE_FIELDS) if attrs.get(name)]
        if len(ways) > 1:
            raise serializers.ValidationError({ways[1]: [_("Specify the code in only one way.")]})
        return attrs


def with_code(user: User, data: dict[str, Any], check: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return the fields of a request, with the code as a snapshot from any of its sources.

    Args:
        check: refuses what else is wrong with the fields, where the code itself is refused.
    """
    fields = {**data}
    upload, archive, home = (fields.pop(name, None) for name in CODE_FIELDS)
    refusals = Refusals()
    with refusals:
        if upload:
            fields["code"] = snapshots.from_upload(owner=user, upload=upload)
        elif archive:
            fields["code"] = snapshots.from_sent_file(archive, user)
        elif home:
            fields["code"] = snapshots.from_home(owner=user, folder=home)
    if refusals:
        with refusals:
            check(fields)
        refusals.end()
    return fields
