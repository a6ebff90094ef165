"""`/api/v1/clusters/{id}/priority/`: who in a cluster goes first."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.api import NumberedViewSet
from workers.core.models import VirtualCluster
from workers.jobs import actions
from workers.resources.clusters.api.serializers import JobPriorityIn


class ClusterPriorityViewSet(NumberedViewSet):
    """Priorities of the jobs that wait in the clusters the caller is in charge of."""

    needs = {"priority": Action.CLUSTER_ADMINISTER}
    serializer_class = JobPriorityIn
    queryset = VirtualCluster.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return VirtualCluster.objects.visible_to(user).administered_by(user)

    @extend_schema(request=JobPriorityIn)
    @action(detail=True, methods=["post"])
    def priority(self, request: Request, pk: str) -> Response:
        """Give a job that waits in the cluster another priority: {"job", "priority"}."""
        user: Any = request.user
        cluster = self.get_object()
        sent = JobPriorityIn(data=request.data)
        sent.is_valid(raise_exception=True)
        job = get_object_or_404(cluster.jobs, pk=sent.validated_data["job"])
        actions.prioritise(job, sent.validated_data["priority"], by=user)
        return Response({"job": job.pk, "priority": job.priority})
