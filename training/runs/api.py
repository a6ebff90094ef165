"""`training/jobs`: the same services as the pages."""

from __future__ import annotations

import dataclasses
from typing import Any

from django.db import transaction
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.api import NumberedViewSet, parse_request
from aiplatform.lib.downloads import send_file
from aiplatform.lib.idempotency import once, once_in_parts, store_response
from aiplatform.lib.zips import send_zip
from training.programs.serializers import CODE_FIELDS, with_code
from training.runs import checkpoints, drafts, folds, jobs, previews, profiles, results, steering
from training.runs.models import TrainingJob
from training.runs.orders import ORDERING
from training.runs.serializers import (
    CheckpointOut,
    CrossValidationOut,
    LayersIn,
    PreviewIn,
    ProfileIn,
    ProfileOut,
    RestoreIn,
    TrainingDetailOut,
    TrainingIn,
    TrainingOut,
)
from workers.core.states import GROUPS, JobState
from workers.jobs.output import files as output_files
from workers.jobs.output import logs, metrics
from workers.jobs.output.api import attempt_scope as asked
from workers.jobs.output.api.files import OutputOut
from workers.scheduling import preview


class TrainingViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    needs = {
        "list": Action.TRAINING_VIEW,
        "retrieve": Action.TRAINING_VIEW,
        "create": Action.TRAINING_SUBMIT,
        "preview": Action.TRAINING_SUBMIT,
        "pause": Action.TRAINING_CONTROL,
        "resume": Action.TRAINING_CONTROL,
        "suspend": Action.TRAINING_CONTROL,
        "finish": Action.TRAINING_CONTROL,
        "stop": Action.TRAINING_CONTROL,
        "restore": Action.TRAINING_CONTROL,
        "layers": Action.TRAINING_SUBMIT,
        "profile": Action.TRAINING_SUBMIT,
        "read_profile": Action.TRAINING_VIEW,
        "checkpoints": Action.TRAINING_VIEW,
        "cross_validation": Action.TRAINING_VIEW,
        "files": Action.TRAINING_VIEW,
        "file_content": Action.TRAINING_VIEW,
        "file_zip": Action.TRAINING_VIEW,
        "log": Action.TRAINING_VIEW,
        "metrics": Action.TRAINING_VIEW,
    }
    asks = {
        "list": ("state", "search"),
        "files": ("attempt",),
        "file_content": ("path", "attempt"),
        "file_zip": ("attempt",),
        "log": ("offset", "limit", "attempt", "tail", "rank"),
        "metrics": ("key", "attempt"),
    }
    asks_many = ("key",)
    orders = ORDERING
    serializer_class = TrainingOut

    def get_queryset(self) -> Any:
        rows = TrainingJob.objects.visible_to(self.request.user).for_list()
        if self.action == "list":
            params = queries.read_filters(self.request)
            state = queries.read_choice(params, "state", *GROUPS, *JobState.values)
            rows = rows.in_state(state).named_like(params.get("search", "")[:100])
        return rows

    def paginate_queryset(self, queryset: Any) -> Any:
        trainings = super().paginate_queryset(queryset)
        results.add_newest_metrics(trainings or [])
        return trainings

    def get_object(self) -> TrainingJob:
        training: TrainingJob = super().get_object()
        results.add_newest_metrics([training])
        return training

    def get_serializer_class(self) -> Any:
        return TrainingOut if self.action == "list" else TrainingDetailOut

    def answer(self, training: TrainingJob, status: int = 200) -> Response:
        return Response(TrainingDetailOut(training, context=self.get_serializer_context()).data, status=status)

    @extend_schema(request=TrainingIn, responses={201: TrainingDetailOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        data = parse_request(TrainingIn(data=request.data, context=self.get_serializer_context()), drafts.check_parts)
        training_request = request_of(request.user, data)
        with transaction.atomic():
            return store_response(request, self.answer(jobs.submit(user=request.user, request=training_request), 201))

    @extend_schema(request=PreviewIn)
    @action(detail=False, methods=["post"])
    def preview(self, request: ApiRequest) -> Response:
        """Whether it is right and whether it would start now; queues nothing."""
        data = parse_request(PreviewIn(data=request.data, context=self.get_serializer_context()), drafts.check_parts)
        for name in CODE_FIELDS:
            data.pop(name)
        draft = drafts.check(request.user, drafts.TrainingRequest(**data))
        return Response(dataclasses.asdict(preview.preview_request(request.user, draft.resources, kind=jobs.KIND)))

    def _steer(self, request: ApiRequest, verb: str) -> Response:
        return self.answer(steering.steer(self.get_object(), verb, by=request.user), 202)

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def pause(self, request: ApiRequest, pk: str) -> Response:
        return self._steer(request, "pause")

    @extend_schema(request=None)
    @action(detail=True, methods=["post"], url_path="continue")
    def resume(self, request: ApiRequest, pk: str) -> Response:
        return self._steer(request, "continue")

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def suspend(self, request: ApiRequest, pk: str) -> Response:
        """Let it save and give its devices back; it waits, paused, until it is continued."""
        return self._steer(request, "suspend")

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def finish(self, request: ApiRequest, pk: str) -> Response:
        return self._steer(request, "finish")

    @extend_schema(request=None)
    @action(detail=True, methods=["post"])
    def stop(self, request: ApiRequest, pk: str) -> Response:
        return self._steer(request, "stop")

    @extend_schema(request=RestoreIn)
    @action(detail=True, methods=["post"])
    @once
    def restore(self, request: ApiRequest, pk: str) -> Response:
        serializer = RestoreIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        return self.answer(jobs.restore(self.get_object(), by=request.user, **serializer.validated_data), 202)

    @extend_schema(request=LayersIn, responses={201: TrainingDetailOut})
    @action(detail=True, methods=["post"])
    @once
    def layers(self, request: ApiRequest, pk: str) -> Response:
        """Look into its layers by a short job, which leaves layers/layers.json and pictures among its files."""
        serializer = LayersIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        return self.answer(previews.layers(self.get_object(), by=request.user, **serializer.validated_data), 201)

    @extend_schema(request=ProfileIn, responses={201: TrainingDetailOut})
    @action(detail=True, methods=["post"])
    @once
    def profile(self, request: ApiRequest, pk: str) -> Response:
        """Profile some of its steps by a short job, which leaves profile/profile.json among its files."""
        training = self.get_object()
        return self.answer(
            previews.profile(training, by=request.user, **parse_request(ProfileIn(data=request.data))), 201
        )

    @extend_schema(responses=ProfileOut)
    @profile.mapping.get
    def read_profile(self, request: ApiRequest, pk: str) -> Response:
        """The newest profile: of a preset its newest look's, of a script of one's own what it left itself."""
        return Response(ProfileOut(profiles.require_profile(self.get_object(), request.user)).data)

    @extend_schema(responses=CheckpointOut(many=True))
    @action(detail=True)
    def checkpoints(self, request: ApiRequest, pk: str) -> Response:
        return Response(CheckpointOut(checkpoints.valid(self.get_object()), many=True).data)

    @extend_schema(responses=CrossValidationOut)
    @action(detail=True, url_path="cross-validation")
    def cross_validation(self, request: ApiRequest, pk: str) -> Response:
        """Return all folds of the cross-validation that this training belongs to, and their joint metrics."""
        trainings = folds.together(self.get_object(), user=request.user)
        summary = {"folds": trainings, "figures": folds.figures(trainings)}
        return Response(CrossValidationOut(summary, context=self.get_serializer_context()).data)

    @extend_schema(responses=OutputOut(many=True), parameters=[OpenApiParameter("attempt", int)])
    @action(detail=True)
    def files(self, request: ApiRequest, pk: str) -> Response:
        training = self.get_object()
        attempt = results.attempt_of(training, request.query_params.get("attempt", ""))
        rows, more = output_files.listed(training.job, attempt)
        headers = {"X-More-Files": "true"} if more else {}
        return Response(OutputOut(rows, many=True).data, headers=headers)

    @extend_schema(parameters=[OpenApiParameter("path", str, required=True), OpenApiParameter("attempt", int)])
    @action(detail=True, url_path="files/content")
    def file_content(self, request: ApiRequest, pk: str) -> Any:
        training = self.get_object()
        path = request.query_params.get("path", "")
        attempt = results.attempt_of(training, request.query_params.get("attempt", ""))
        descriptor = output_files.open_output(training.job, attempt, path)
        return send_file(request._request, descriptor, path.rsplit("/", 1)[-1])

    @extend_schema(parameters=[OpenApiParameter("attempt", int)])
    @action(detail=True, url_path="files/zip")
    def file_zip(self, request: ApiRequest, pk: str) -> Any:
        training = self.get_object()
        attempt = results.attempt_of(training, request.query_params.get("attempt", ""))
        files = output_files.for_zip(training.job, attempt)
        return send_zip(request._request, files, f"{training.job.name}-{attempt}.zip")

    @extend_schema(parameters=[OpenApiParameter(name, int) for name in ("offset", "limit", "attempt", "tail")])
    @action(detail=True)
    def log(self, request: ApiRequest, pk: str) -> Response:
        """Return a part of the log by byte offset; `next_offset` is where to continue."""
        job, params = self.get_object().job, request.query_params
        wanted = {name: queries.read_int(params, name) for name in ("offset", "limit", "tail")}
        bounds = {name: value for name, value in wanted.items() if value is not None}
        piece = logs.piece(job, attempt=asked.attempt(job, params), rank=asked.rank(job, params), **bounds)
        return Response(dataclasses.asdict(piece))

    @extend_schema(parameters=[OpenApiParameter("key", str, many=True), OpenApiParameter("attempt", int)])
    @action(detail=True)
    def metrics(self, request: ApiRequest, pk: str) -> Response:
        """Curves as (step, value) and the newest value of each."""
        keys = request.query_params.getlist("key") or None
        job = self.get_object().job
        curves = metrics.curves(job, attempt=asked.attempt(job, request.query_params), keys=keys)
        return Response(dataclasses.asdict(curves))


def request_of(user: Any, data: dict[str, Any]) -> drafts.TrainingRequest:
    """Build the request, with custom code as a snapshot from any of its sources."""
    fields_in = {**data, "command": data["command"].strip()}
    fields = with_code(
        user, fields_in, lambda values: drafts.check_parts(**{name: values[name] for name in drafts.PARTS})
    )
    return drafts.TrainingRequest(**fields)
