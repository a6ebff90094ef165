"""`/api/v1/commands/`: the same services as the pages. What a command does then is under `/api/v1/jobs/{id}/`."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, VisibleField, parse_request
from aiplatform.lib.idempotency import once_in_parts, store_response
from aiplatform.lib.secret_names import mask_params
from training.commands import services
from training.commands.models import Command
from training.commands.orders import ORDERING
from training.programs import layout, script
from training.programs.launchers import Launcher
from training.programs.serializers import CODE_FIELDS, InputsIn, with_code
from workers.core.states import GROUPS, JobState
from workers.images.models import Image
from workers.jobs.api.following import ArrayIn
from workers.jobs.api.resource_request import ResourcesIn, RootIn
from workers.scheduling import preview


class CommandIn(StrictMixin, InputsIn, ArrayIn, RootIn, ResourcesIn):
    command = serializers.CharField(
        max_length=script.MAX_LENGTH,
        trim_whitespace=False,
        help_text="A line or a script for bash, or with its own “#!”.",
    )
    name = serializers.CharField(max_length=100, default="", allow_blank=True, help_text="Empty: of the command.")
    image = VisibleField(Image, to_use=True, required=False, allow_null=True, default=None)
    output_path = serializers.CharField(max_length=255, default="", allow_blank=True)
    writes_checkpoints = serializers.BooleanField(default=False)
    launcher = serializers.ChoiceField(choices=Launcher.choices, default=Launcher.ONCE)
    processes = serializers.IntegerField(
        min_value=0, max_value=layout.MAX_PROCESSES, default=0, help_text="Per node; 0: one per GPU."
    )
    worker_command = serializers.CharField(
        max_length=script.MAX_LENGTH, default="", allow_blank=True, trim_whitespace=False,
        help_text="What the machines beside the first run; empty: the same.",
    )  # fmt: skip


class CommandOut(OutMixin, serializers.ModelSerializer[Command]):
    """A command; state, log, files and controls are the job's of the same number."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField(source="job.name")
    owner = serializers.CharField(source="job.owner.username")
    state = serializers.CharField(source="job.state")
    sentence = serializers.CharField(source="job.message")
    command = serializers.SerializerMethodField()
    variables = serializers.SerializerMethodField()
    secrets = serializers.ListField(child=serializers.CharField(), source="secret_names", help_text="Their names.")
    datasets = serializers.SerializerMethodField(help_text='[{"id", "name"}]; the id is null where it was deleted.')
    worker_command = serializers.SerializerMethodField()
    array = serializers.IntegerField(source="job.array_id", help_text="The array it belongs to, if any.")
    array_index = serializers.IntegerField(source="job.array_index")
    image = serializers.SerializerMethodField(help_text='{"id", "name"}; the id is null where it was deleted.')
    created_at = serializers.DateTimeField(source="job.created_at")
    ended_at = serializers.DateTimeField(source="job.ended_at")
    url = serializers.SerializerMethodField()

    class Meta:
        model = Command
        fields = [
            "id", "name", "owner", "state", "sentence", "command", "code", "image", "output_path", "datasets",
            "variables", "secrets", "writes_checkpoints", "launcher", "processes",
            "worker_command", "array", "array_index", "created_at", "ended_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_command(self, command: Command) -> str:
        return script.shown(command.script)

    def get_worker_command(self, command: Command) -> str:
        return script.shown(command.worker_script)

    def get_variables(self, command: Command) -> dict[str, str]:
        return mask_params(command.variables)

    def get_datasets(self, command: Command) -> list[dict[str, Any]]:
        return [{"id": row.version_id, "name": row.name} for row in command.inputs.all()]

    def get_image(self, command: Command) -> dict[str, Any] | None:
        use = getattr(command.job, "image_use", None)
        return {"id": use.image_id, "name": use.name} if use else None

    def get_url(self, command: Command) -> str:
        return f"/jobs/{command.pk}/"


class CommandViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "create": Action.JOBS_SUBMIT,
        "preview": Action.JOBS_SUBMIT,
    }
    asks = {"list": ("state", "search")}
    orders = ORDERING
    serializer_class = CommandOut

    def get_queryset(self) -> Any:
        rows = Command.objects.visible_to(self.request.user).for_list()
        if self.action == "list":
            params = queries.read_filters(self.request)
            state = queries.read_choice(params, "state", *GROUPS, *JobState.values)
            rows = rows.in_state(state).named_like(params.get("search", "")[:100])
        return rows

    @extend_schema(request=CommandIn, responses={201: CommandOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Queue a custom job. Follow it under `/api/v1/jobs/{id}/`."""
        data = parse_request(CommandIn(data=request.data, context=self.get_serializer_context()), services.check_parts)
        command_request = request_of(request.user, data)
        with transaction.atomic():
            command = services.submit(user=request.user, request=command_request)
            return store_response(
                request, Response(CommandOut(command, context=self.get_serializer_context()).data, 201)
            )

    @extend_schema(request=CommandIn)
    @action(detail=False, methods=["post"])
    def preview(self, request: ApiRequest) -> Response:
        """Return whether the request is valid and would start now; queue nothing."""
        data = parse_request(CommandIn(data=request.data, context=self.get_serializer_context()), services.check_parts)
        command_request = services.CommandRequest(
            **{name: value for name, value in data.items() if name not in CODE_FIELDS}
        )
        resources = services.check(request.user, command_request)
        return Response(dataclasses.asdict(preview.preview_request(request.user, resources, kind=services.KIND)))


def request_of(user: Any, data: dict[str, Any]) -> services.CommandRequest:
    """Build the request, with the code as a snapshot from any of its sources."""
    fields = with_code(user, data, lambda fields_in: services.check(user, services.CommandRequest(**fields_in)))
    return services.CommandRequest(**fields)
