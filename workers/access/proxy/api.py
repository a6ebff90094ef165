"""`/api/v1/jobs/{id}/ports/` and `/api/v1/ports/`: ports of jobs, published, opened and withdrawn."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from accounts.models import ApiToken
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, parse_request
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.idempotency import once
from workers.access.proxy import addresses, port_access, published_ports
from workers.access.proxy.models import PublishedPort
from workers.core.models import Job
from workers.core.states import JobState

_NAME = r"(?P<name>[a-z0-9-]{1,30})"


class PortOut(OutMixin, serializers.ModelSerializer[PublishedPort]):
    """A port of a job that browsers reach; `address` is where, after it was opened or with an API token."""

    job_name = serializers.CharField(source="job.name")
    owner = serializers.CharField(source="job.owner.username")
    address = serializers.SerializerMethodField()

    class Meta:
        model = PublishedPort
        fields = ["id", "job", "job_name", "owner", "name", "port", "by_platform", "published_at", "address"]
        read_only_fields = fields

    def get_address(self, row: PublishedPort) -> str:
        request = self.context["request"]
        base = addresses.origin(row.job_id, row.name, host=request.get_host(), secure=request.is_secure())
        return base + addresses.base_path(row.job_id, row.name) if addresses.are_ports_enabled() else ""


class PortIn(StrictMixin, serializers.Serializer[Any]):
    port = serializers.IntegerField(min_value=published_ports.PORTS[0], max_value=published_ports.PORTS[-1])
    name = serializers.CharField(max_length=30, required=False, allow_blank=True, default="")


class OpenedOut(serializers.Serializer[Any]):
    """An address that lets one browser in, once and soon."""

    url = serializers.CharField()
    expires_in_s = serializers.IntegerField()


class JobPortViewSet(NumberedViewSet):
    """Ports of one job."""

    needs = {
        "ports": Action.JOBS_VIEW,
        "publish": Action.JOBS_CONTROL,
        "withdraw": Action.JOBS_CONTROL,
        "open": Action.JOBS_VIEW,
    }
    serializer_class = PortOut
    queryset = Job.objects.none()

    def get_queryset(self) -> QuerySet[Job]:
        user = self.request.user
        return Job.objects.editable_by(user) if self.action == "publish" else Job.objects.visible_to(user)

    @extend_schema(responses=PortOut(many=True))
    @action(detail=True, pagination_class=None)
    def ports(self, request: ApiRequest, pk: str) -> Response:
        """Its published ports."""
        rows = PublishedPort.objects.visible_to(request.user).filter(job=self.get_object()).select_related("job__owner")
        return Response(PortOut(rows, many=True, context=self.get_serializer_context()).data)

    @extend_schema(request=PortIn, responses={201: PortOut})
    @ports.mapping.post
    @once
    def publish(self, request: ApiRequest, pk: str) -> Response:
        """Let browsers reach a port; at first those of the job's owner alone. Share it as the kind `port`."""
        row = published_ports.publish(self.get_object(), by=request.user, **parse_request(PortIn(data=request.data)))
        return Response(PortOut(row, context=self.get_serializer_context()).data, 201)

    @extend_schema(responses={204: None})
    @action(detail=True, methods=["delete"], url_path=f"ports/{_NAME}")
    def withdraw(self, request: ApiRequest, pk: str, name: str) -> Response:
        """Close a port; who is in is out within seconds."""
        row = get_object_or_404(PublishedPort.objects.editable_by(request.user), job=pk, name=name)
        published_ports.withdraw(row, by=request.user)
        return Response(status=204)

    @extend_schema(request=None, responses=OpenedOut)
    @action(detail=True, methods=["post"], url_path=f"ports/{_NAME}/open")
    def open(self, request: ApiRequest, pk: str, name: str) -> Response:
        """Make an address that lets a browser in once, within half a minute. It ends with the token or the sign-in."""
        if hasattr(request._request, "behind"):
            raise NotAllowed(_("You are acting for another user. Only that user can open their ports."))
        row = get_object_or_404(PublishedPort.objects.visible_to(request.user).select_related("job"), job=pk, name=name)
        token = request.auth if isinstance(request.auth, ApiToken) else None
        opened = port_access.open_port(
            row,
            user=request.user,
            host=request.get_host(),
            secure=request.is_secure(),
            session_key="" if token else request._request.session.session_key or "",
            token=token,
        )
        return Response(OpenedOut(opened).data)


class PortViewSet(ListModelMixin, NumberedViewSet):
    """Ports of running jobs that the caller may open: own and shared ones."""

    needs = {"list": Action.JOBS_VIEW}
    serializer_class = PortOut
    queryset = PublishedPort.objects.none()

    def get_queryset(self) -> QuerySet[PublishedPort]:
        rows = PublishedPort.objects.openable_by(self.request.user).filter(job__state=JobState.RUNNING)
        return rows.select_related("job__owner")
