"""`/api/v1/environments/`: the same services as the pages. Log and controls are under `/api/v1/jobs/{id}/`."""

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
from aiplatform.lib.idempotency import once, once_in_parts
from aiplatform.lib.idempotency import store_response as keep_answer
from aiplatform.lib.secret_names import mask_params
from training.environments import actions, jupyter_access, lifecycle, panel, services, vscode
from training.environments.models import Environment
from training.environments.orders import ORDERING
from training.programs.serializers import InputsIn, with_code
from workers.core.states import GROUPS, JobState
from workers.images.models import Image
from workers.jobs.api.resource_request import ResourcesIn, RootIn
from workers.scheduling import preview

CODE_FIELDS = ("code_upload", "code_archive")


class EnvironmentIn(StrictMixin, InputsIn, RootIn, ResourcesIn):
    home_path = None  # type: ignore[assignment]  # taken out: the home itself is there
    name = serializers.CharField(max_length=100, default="", allow_blank=True, help_text="Empty: of the person.")
    image = VisibleField(
        Image, to_use=True, required=False, allow_null=True, default=None, help_text="Null: the built-in JupyterLab."
    )
    description = serializers.CharField(max_length=300, default="", allow_blank=True)
    folder = serializers.CharField(
        max_length=255, default="", allow_blank=True, help_text="In the home, where JupyterLab opens; made if missing."
    )
    idle_hours = serializers.FloatField(
        required=False, allow_null=True, default=None, help_text="Stopped when unused for so long; null: as usual."
    )


class MoreIn(StrictMixin, serializers.Serializer[Any]):
    hours = serializers.FloatField(default=actions.HOURS, help_text="How much longer it may run.")


class MoreOut(serializers.Serializer[Any]):
    granted = serializers.BooleanField(help_text="Whether it may at once; otherwise those in charge were asked.")


class EnvironmentOut(OutMixin, serializers.ModelSerializer[Environment]):
    """An environment; state, log and controls are the job's of the same number."""

    id = serializers.IntegerField(source="pk")
    name = serializers.CharField(source="job.name")
    owner = serializers.CharField(source="job.owner.username")
    state = serializers.CharField(source="job.state")
    sentence = serializers.CharField(source="job.message")
    condition = serializers.SerializerMethodField(help_text="Of one that runs: starting, ready, silent or idle.")
    opens = serializers.SerializerMethodField(help_text="Names of its ports that open now: jupyter, vscode.")
    nodes = serializers.IntegerField(source="job.nodes", help_text="Machines; JupyterLab runs on the first.")
    image = serializers.SerializerMethodField()
    root_inside = serializers.BooleanField(source="job.root_inside")
    variables = serializers.SerializerMethodField()
    secrets = serializers.ListField(child=serializers.CharField(), source="secret_names", help_text="Their names.")
    datasets = serializers.SerializerMethodField(help_text='[{"id", "name"}]; the id is null where it was deleted.')
    left_s = serializers.SerializerMethodField(help_text="Run time that is left; null without a limit.")
    idle_s = serializers.SerializerMethodField(help_text="For how long nothing showed that it is used.")
    stops_at = serializers.SerializerMethodField(help_text="When it is stopped if it stays unused; null: never.")
    created_at = serializers.DateTimeField(source="job.created_at")
    ended_at = serializers.DateTimeField(source="job.ended_at")
    url = serializers.SerializerMethodField()

    class Meta:
        model = Environment
        fields = [
            "id", "name", "description", "owner", "state", "sentence", "condition", "nodes", "opens", "image",
            "root_inside", "folder", "code", "variables", "secrets", "datasets", "idle_hours", "ready_at", "alive_at",
            "alive_by", "left_s", "idle_s", "stops_at", "created_at", "ended_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_condition(self, environment: Environment) -> str:
        return panel.condition_of(environment)

    def get_opens(self, environment: Environment) -> list[str]:
        if panel.condition_of(environment) not in ("ready", "idle", "silent"):
            return []
        return [jupyter_access.NAME, *([vscode.NAME] if vscode.is_offered(environment) else [])]

    def get_image(self, environment: Environment) -> str:
        return str(self._facts(environment)["image"])

    def get_variables(self, environment: Environment) -> dict[str, str]:
        return mask_params(environment.variables)

    def get_datasets(self, environment: Environment) -> list[dict[str, Any]]:
        return [{"id": row.version_id, "name": row.name} for row in environment.inputs.all()]

    def get_left_s(self, environment: Environment) -> float | None:
        left = self._facts(environment)["left"]
        return left.total_seconds() if left is not None else None

    def get_idle_s(self, environment: Environment) -> float | None:
        return self._facts(environment)["idle_s"] if panel.condition_of(environment) else None

    def get_stops_at(self, environment: Environment) -> str | None:
        at = self._facts(environment)["stops_at"]
        return at.isoformat() if at else None

    def get_url(self, environment: Environment) -> str:
        return f"/jobs/{environment.pk}/"

    def _facts(self, environment: Environment) -> dict[str, Any]:
        facts: dict[str, Any] | None = getattr(environment, "shown", None)
        if facts is None:
            facts = environment.shown = panel.facts(environment, self.context["request"].user)
        return facts


class EnvironmentViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "create": Action.JOBS_SUBMIT,
        "preview": Action.JOBS_SUBMIT,
        "keep": Action.JOBS_CONTROL,
        "extend": Action.JOBS_CONTROL,
        "destroy": Action.JOBS_CONTROL,
    }
    asks = {"list": ("state", "search")}
    orders = ORDERING
    serializer_class = EnvironmentOut

    def get_queryset(self) -> Any:
        rows = Environment.objects.visible_to(self.request.user).not_deleted().for_list()
        if self.action == "list":
            params = queries.read_filters(self.request)
            state = queries.read_choice(params, "state", *GROUPS, *JobState.values)
            return rows.in_state(state).named_like(params.get("search", "")[:100])
        return rows if self.action == "retrieve" else rows.editable_by(self.request.user)

    def get_object(self) -> Any:
        environment = super().get_object()
        return lifecycle.see_ready(environment) if self.action == "retrieve" else environment

    @extend_schema(request=EnvironmentIn, responses={201: EnvironmentOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Queue a workspace. Poll it until its `condition` is `ready`."""
        data = parse_request(
            EnvironmentIn(data=request.data, context=self.get_serializer_context()), services.check_parts
        )
        environment_request = request_of(request.user, data)
        with transaction.atomic():
            environment = services.submit(user=request.user, request=environment_request)
            out = EnvironmentOut(environment, context=self.get_serializer_context())
            return keep_answer(request, Response(out.data, 201))

    @extend_schema(request=EnvironmentIn)
    @action(detail=False, methods=["post"])
    def preview(self, request: ApiRequest) -> Response:
        """Return whether the request is valid and would start now; queue nothing."""
        data = parse_request(
            EnvironmentIn(data=request.data, context=self.get_serializer_context()), services.check_parts
        )
        environment_request = services.EnvironmentRequest(
            **{name: value for name, value in data.items() if name not in CODE_FIELDS}
        )
        resources = services.check(request.user, environment_request)
        return Response(dataclasses.asdict(preview.preview_request(request.user, resources, kind=services.KIND)))

    @extend_schema(request=None, responses={200: EnvironmentOut})
    @action(detail=True, methods=["post"])
    def keep(self, request: ApiRequest, pk: str) -> Response:
        """Mark the workspace as still needed: its idle time starts again."""
        environment = self.get_object()
        actions.mark_needed(environment, by=request.user)
        return Response(EnvironmentOut(environment, context=self.get_serializer_context()).data)

    @extend_schema(request=MoreIn, responses={200: MoreOut})
    @action(detail=True, methods=["post"])
    @once
    def extend(self, request: ApiRequest, pk: str) -> Response:
        """Extend the run time, up to the limit of the cluster; beyond it, the cluster's managers decide."""
        data = parse_request(MoreIn(data=request.data))
        return Response({"granted": actions.extend(self.get_object(), hours=data["hours"], by=request.user)})

    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Delete one that has ended, with the packages installed in it. The home and the record of its job stay."""
        actions.delete(self.get_object(), by=request.user)
        return Response(status=204)


def request_of(user: Any, data: dict[str, Any]) -> services.EnvironmentRequest:
    """Build the request, with the code as a snapshot from any of its sources."""
    fields = with_code(user, data, lambda fields_in: services.check(user, services.EnvironmentRequest(**fields_in)))
    return services.EnvironmentRequest(**fields)
