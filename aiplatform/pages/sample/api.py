"""`/api/v1/sample-project/`: create, show and remove the sample project of the caller."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import PlatformAPIView
from aiplatform.lib.errors import NotFound
from aiplatform.pages.sample import creation, progress, removal
from aiplatform.pages.sample.models import SampleProject


class SampleStepOut(OutMixin, serializers.Serializer[Any]):
    key = serializers.ChoiceField(choices=["dataset", "training", "endpoint"])
    label = serializers.CharField()  # type: ignore[assignment]  # a field of the answer, not DRF's own label
    state = serializers.ChoiceField(choices=["done", "current", "waiting"])
    name = serializers.CharField(allow_blank=True, help_text="Of the object, once it exists.")
    url = serializers.CharField(allow_blank=True, help_text="Path of its page.")
    detail = serializers.CharField(allow_blank=True, help_text="What the current step does or waits for.")


class SampleProjectOut(OutMixin, serializers.ModelSerializer[SampleProject]):
    """The sample project with its steps and the ids of its objects."""

    message = serializers.SerializerMethodField(help_text="Why it failed.")
    training = serializers.IntegerField(source="job_id", allow_null=True, help_text="Id of the job of its training.")
    steps = serializers.SerializerMethodField()

    class Meta:
        model = SampleProject
        fields = ["state", "message", "dataset", "training", "model", "service", "steps", "created_at", "updated_at"]
        read_only_fields = fields

    def get_message(self, project: SampleProject) -> str:
        return str(project.message)

    @extend_schema(responses=SampleStepOut(many=True))
    def get_steps(self, project: SampleProject) -> list[dict[str, Any]]:
        return [dict(SampleStepOut(step).data) for step in progress.steps(project)]


class SampleProjectView(PlatformAPIView):
    """The caller's sample project: a dataset, a trained model and an endpoint to explore the platform with."""

    needs = Action.DATASETS_CREATE

    @extend_schema(responses=SampleProjectOut)
    def get(self, request: ApiRequest) -> Response:
        """Show the sample project and the progress of its steps."""
        project = progress.load(request.user)
        if project is None:
            raise NotFound(_("You have no sample project."))
        return Response(SampleProjectOut(project).data)

    @extend_schema(request=None, responses={202: SampleProjectOut})
    def post(self, request: ApiRequest) -> Response:
        """Create the sample project in the background; a failed one is continued."""
        project = creation.start(request.user)
        return Response(SampleProjectOut(project).data, status=202)

    @extend_schema(responses={202: SampleProjectOut})
    def delete(self, request: ApiRequest) -> Response:
        """Remove the sample project in the background: exactly the objects that were created."""
        project = removal.start(request.user)
        return Response(SampleProjectOut(project).data, status=202)
