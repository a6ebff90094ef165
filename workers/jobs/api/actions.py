"""`/api/v1/jobs/{id}/{pause,continue,suspend,stop,force-stop,finish,restore,priority}/`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.api import StrictMixin
from aiplatform.lib.errors import NotAllowed
from aiplatform.lib.idempotency import once, once_in_parts
from workers.core.models import Job
from workers.jobs import actions, following, more_time, stopping
from workers.jobs.api.following import FollowIn
from workers.jobs.api.jobs import JobViewSet
from workers.jobs.api.more_time import MoreTimeIn, TimeRequestOut
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
    """Jobs of every kind that the caller may see, with their buttons."""

    needs = {
        **JobViewSet.needs,
        "pause": Action.JOBS_CONTROL,
        "continue_": Action.JOBS_CONTROL,
        "suspend": Action.JOBS_CONTROL,
        "stop": Action.JOBS_CONTROL,
        "force_stop": Action.JOBS_CONTROL,
        "finish": Action.JOBS_CONTROL,
        "restore": Action.JOBS_CONTROL,
        "priority": Action.JOBS_CONTROL,
        "extend": Action.JOBS_CONTROL,
        "follow": Action.JOBS_CONTROL,
        "stop_many": Action.TASKS_MANAGE,
    }

    @extend_schema(operation_id="v1_jobs_stop_many", request=StopManyIn, responses=StoppedOut)
    @action(detail=False, methods=["post"], url_path="stop")
    @once_in_parts
    def stop_many(self, request: Request) -> Response:
        """End up to 500 jobs at once, for operators. Those that had ended are counted, unknown ones passed over."""
        requested = StopManyIn(data=request.data)
        requested.is_valid(raise_exception=True)
        user: Any = request.user
        return Response(StoppedOut(stopping.stop_many(by=user, numbers=requested.validated_data["jobs"])).data)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @once
    def pause(self, request: Request, pk: str) -> Response:
        """Pause it: memory is kept, computing stops."""
        return self._request(actions.pause)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], url_path="continue")
    @once
    def continue_(self, request: Request, pk: str) -> Response:
        """Let a paused job go on."""
        return self._request(actions.resume)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @once
    def suspend(self, request: Request, pk: str) -> Response:
        """Let it save and give its devices back; it waits, paused, until it is continued."""
        return self._request(actions.suspend)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @once
    def stop(self, request: Request, pk: str) -> Response:
        """End it at once."""
        return self._request(actions.stop)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], url_path="force-stop")
    @once
    def force_stop(self, request: Request, pk: str) -> Response:
        """Kill it at once, without any grace, also where it is stopping already.

        For operators, and for those in charge of its cluster. Where a machine of the job does not answer, the request
        is kept and `sentence` says so.
        """
        user: Any = request.user
        job = Job.objects.forcible_by(user).filter(pk=pk).first()
        if job is None:
            self.get_object()
            raise NotAllowed(_("Only operators and administrators of its cluster can force-stop a job."))
        return Response(self.get_serializer(actions.force_stop(job, by=user)).data, status=202)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @once
    def finish(self, request: Request, pk: str) -> Response:
        """End it now and keep the result."""
        return self._request(actions.finish)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    @once
    def restore(self, request: Request, pk: str) -> Response:
        """Queue it again from its newest checkpoint."""
        return self._request(actions.restore)

    @extend_schema(request=PriorityIn)
    @action(detail=True, methods=["post"])
    def priority(self, request: Request, pk: str) -> Response:
        """Give a waiting job another priority: 0 to 99, or 100 for urgent."""
        self._own()
        requested = PriorityIn(data=request.data)
        requested.is_valid(raise_exception=True)
        return self._request(partial(actions.prioritise, priority=requested.validated_data["priority"]))

    @extend_schema(request=FollowIn)
    @action(detail=True, methods=["post"])
    def follow(self, request: Request, pk: str) -> Response:
        """Let a waiting job follow these jobs, instead of those that it followed before."""
        self._own()
        requested = FollowIn(data=request.data)
        requested.is_valid(raise_exception=True)
        return self._request(lambda job, by: following.change(job, Following(**requested.validated_data), by=by))

    @extend_schema(request=MoreTimeIn, responses={201: TimeRequestOut})
    @action(detail=True, methods=["post"])
    @once
    def extend(self, request: Request, pk: str) -> Response:
        """Ask for more run time: {"hours", "reason"}. Those in charge of the cluster decide."""
        user: Any = request.user
        job = self._own()
        sent = MoreTimeIn(data=request.data)
        sent.is_valid(raise_exception=True)
        return Response(TimeRequestOut(more_time.request_time(job, by=user, **sent.validated_data)).data, status=201)

    def _request(self, act: Callable[..., Any]) -> Response:
        """Write the request; 202, because what follows is reported in the job's state."""
        act(self._own(), by=self.request.user)
        return Response(self.get_serializer(self.get_object()).data, status=202)

    def _own(self) -> Job:
        """The job, for those who may steer it: before anything that was sent is looked at."""
        user: Any = self.request.user
        job: Job = self.get_object()
        if not Job.objects.editable_by(user).filter(pk=job.pk).exists():
            raise Http404
        return job
