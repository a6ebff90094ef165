"""`/api/v1/cluster/decision/`: the scheduler's decision at this moment, to keep and to replay."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.api import PlatformAPIView
from workers.planning.planner import record
from workers.scheduling import decisions


class DecisionView(PlatformAPIView):
    """What the scheduler sees and what it makes of it, as a file for `manage.py simulate --replay`."""

    needs = Action.CLUSTER_MANAGE

    @extend_schema(responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Plan on the live snapshot without applying the plan. People and jobs are numbers in it."""
        decision = decisions.live()
        name = f"decision-{int(decision.now)}.json"
        return Response(record.dump(decision), headers={"Content-Disposition": f'attachment; filename="{name}"'})
