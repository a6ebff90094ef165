"""What jobs that run a user's program take and answer by the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers

from accounts.models import User
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, VisibleField
from aiplatform.lib.errors import Refusals
from aiplatform.lib.secret_names import mask_params
from datasets.models import DatasetVersion, Upload
from training.programs import script, snapshots
from training.programs.models import CodeSnapshot
from workers.images.models import Image
from workers.jobs.api.resource_request import ResourcesIn, RootIn

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


class ProgramIn(StrictMixin, InputsIn, RootIn, ResourcesIn):
    """The fields of `ProgramRequest`."""

    name = serializers.CharField(
        max_length=100, default="", allow_blank=True, help_text="Leave empty to derive a name."
    )
    image = VisibleField(Image, to_use=True, required=False, allow_null=True, default=None)


class ProgramOut(OutMixin, serializers.ModelSerializer[Any]):
    """What all jobs that run a user's program answer; `url` is the page of the job."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField(source="job.name")
    owner = serializers.CharField(source="job.owner.username")
    state = serializers.CharField(source="job.state")
    sentence = serializers.CharField(source="job.message")
    image = serializers.SerializerMethodField(help_text='{"id", "name"}; the id is null where it was deleted.')
    variables = serializers.SerializerMethodField()
    secrets = serializers.ListField(child=serializers.CharField(), source="secret_names", help_text="Their names.")
    datasets = serializers.SerializerMethodField(help_text='[{"id", "name"}]; the id is null where it was deleted.')
    created_at = serializers.DateTimeField(source="job.created_at")
    ended_at = serializers.DateTimeField(source="job.ended_at")
    url = serializers.SerializerMethodField()

    def get_image(self, row: Any) -> dict[str, Any] | None:
        use = getattr(row.job, "image_use", None)
        return {"id": use.image_id, "name": use.name} if use else None

    def get_variables(self, row: Any) -> dict[str, str]:
        return mask_params(row.variables)

    def get_datasets(self, row: Any) -> list[dict[str, Any]]:
        return [{"id": used.version_id, "name": used.name} for used in row.inputs.all()]

    def get_url(self, row: Any) -> str:
        return f"/jobs/{row.pk}/"


class ScriptOut(serializers.Serializer[Any]):
    """The command lines of a program, with their secrets masked."""

    command = serializers.SerializerMethodField()
    worker_command = serializers.SerializerMethodField()

    def get_command(self, row: Any) -> str:
        return script.shown(row.script)

    def get_worker_command(self, row: Any) -> str:
        return script.shown(row.worker_script)


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
