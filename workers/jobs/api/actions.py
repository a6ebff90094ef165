"""`/api/v1/jobs/{id}/{pause,continue,suspend,stop,force-stop,finish,restore,priority}/`."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.api import StrictMixin, parse_request
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.idempotency import once, once_in_parts
from aiplatform.objects.viewsets import object_action
from workers.core.models import Job
from workers.jobs import actions, following, more_time, stopping
from workers.jobs.api.following import FollowIn
from workers.jobs.api.jobs import JobViewSet
from workers.jobs.api.more_time import MoreTimeIn, TimeRequestOut
from workers.jobs.api.serializers import JobDetailOut
from workers.jobs.following import Following


class PriorityIn(StrictMixin, serializers.Serializer):
    priority = serializers.IntegerField(min_value=0, max_value=Job.URGENT)


class StopManyIn(StrictMixin, serializers.Serializer):
    jobs = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1), max_length=stopping.MAX_AT_ONCE
    )


class StoppedOut(serializers.Serializer):
    requested = serializers.ListField(child=serializers.IntegerField())
    over = serializers.IntegerField()


class SteeredJobViewSet(JobViewSet):
    """Jobs of every kind that the caller may see, with their buttons.

    202 is answered because what follows is reported in the state of the job.
    """

    needs = {**JobViewSet.needs, "stop_many": Action.TASKS_MANAGE}
    serializer_class = JobDetailOut
    reach = {"force_stop": "visible_to"}

    @extend_schema(operation_id="v1_jobs_stop_many", request=StopManyIn, responses=StoppedOut)
    @action(detail=False, methods=["post"], url_path="stop")
    @once_in_parts
    def stop_many(self, request: Request) -> Response:
        """End up to 500 jobs at once, for operators. Those that had ended are counted, unknown ones passed over."""
        numbers = parse_request(StopManyIn(data=request.data))["jobs"]
        return Response(StoppedOut(stopping.stop_many(by=self.request.user, numbers=numbers)).data)

    @object_action(status=202, once=True)
    def pause(self, job: Job) -> None:
        """Pause it: memory is kept, computing stops."""
        actions.pause(job, by=self.request.user)

    @object_action(status=202, once=True, url_path="continue")
    def continue_(self, job: Job) -> None:
        """Let a paused job go on."""
        actions.resume(job, by=self.request.user)

    @object_action(status=202, once=True)
    def suspend(self, job: Job) -> None:
        """Let it save and give its devices back; it waits, paused, until it is continued."""
        actions.suspend(job, by=self.request.user)

    @object_action(status=202, once=True)
    def stop(self, job: Job) -> None:
        """End it at once."""
        actions.stop(job, by=self.request.user)

    @extend_schema(request=None, responses={202: JobDetailOut})
    @action(detail=True, methods=["post"], url_path="force-stop")
    @once
    def force_stop(self, request: Request, pk: str) -> Response:
        """Kill it at once, without any grace, also where it is stopping already.

        For operators, and for those in charge of its cluster. Where a machine of the job does not answer, the request
        is kept and `sentence` says so.
        """
        job = Job.objects.forcible_by(self.request.user).filter(pk=pk).first()
        if job is None:
            self.get_object()
            raise NotAllowed(_("Only operators and administrators of its cluster can force-stop a job."))
        return Response(self.get_serializer(actions.force_stop(job, by=self.request.user)).data, status=202)

    @object_action(status=202, once=True)
    def finish(self, job: Job) -> None:
        """End it now and keep the result."""
        actions.finish(job, by=self.request.user)

    @object_action(status=202, once=True)
    def restore(self, job: Job) -> None:
        """Queue it again from its newest checkpoint."""
        actions.restore(job, by=self.request.user)

    @object_action(PriorityIn, status=202)
    def priority(self, job: Job, priority: int) -> None:
        """Give a waiting job another priority: 0 to 99, or 100 for urgent."""
        actions.prioritise(job, priority=priority, by=self.request.user)

    @object_action(FollowIn, status=202)
    def follow(self, job: Job, **values: Any) -> None:
        """Let a waiting job follow these jobs, instead of those that it followed before."""
        following.change(job, Following(**values), by=self.request.user)

    @extend_schema(request=MoreTimeIn, responses={201: TimeRequestOut})
    @action(detail=True, methods=["post"])
    @once
    def extend(self, request: Request, pk: str) -> Response:
        """Ask for more run time: {"hours", "reason"}. Those in charge of the cluster decide."""
        job = self.get_object()
        values = parse_request(MoreTimeIn(data=request.data))
        return Response(TimeRequestOut(more_time.request_time(job, by=self.request.user, **values)).data, status=201)
