"""`/api/v1/arrays/`: arrays of jobs, and the stop of a whole one."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.idempotency import once_in_parts
from aiplatform.objects.viewsets import ObjectViewSet
from workers.core.models import JobArray
from workers.jobs import arrays


class ArrayOut(OutMixin, serializers.ModelSerializer[JobArray]):
    """An array of jobs; its jobs are under `/api/v1/jobs/?array=ID`."""

    owner = serializers.CharField(source="owner.username")
    cluster = serializers.CharField(source="cluster.name")
    states = serializers.SerializerMethodField(help_text="How many of its jobs are in each state.")
    url = serializers.SerializerMethodField()

    class Meta:
        model = JobArray
        fields = ("id", "name", "owner", "cluster", "indices", "size", "at_once", "states", "created_at", "url")

    def get_states(self, array: JobArray) -> dict[str, int]:
        return dict(arrays.states(array))

    def get_url(self, array: JobArray) -> str:
        return f"/arrays/{array.pk}/"


class StopArrayOut(serializers.Serializer):
    requested = serializers.IntegerField()


class ArrayViewSet(ObjectViewSet):
    """Arrays of jobs that the caller may see, newest first."""

    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_CONTROL
    serializer_class = ArrayOut

    @extend_schema(request=None, responses={202: StopArrayOut})
    @action(detail=True, methods=["post"])
    @once_in_parts
    def stop(self, request: Request, pk: str) -> Response:
        """End all of its jobs that have not ended: {"requested"} of them."""
        return Response({"requested": arrays.stop(self.get_object(), by=self.request.user)}, status=202)
