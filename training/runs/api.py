"""`training/jobs`: the same services as the pages."""

from __future__ import annotations

import dataclasses
from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.downloads import send_file
from aiplatform.lib.zips import send_zip
from aiplatform.objects.viewsets import object_action
from training.programs.api import ProgramViewSet
from training.programs.serializers import CODE_FIELDS
from training.runs import checkpoints, drafts, folds, jobs, previews, profiles, results, steering
from training.runs.filters import TrainingFilters
from training.runs.models import TrainingJob
from training.runs.request_schema import SCHEMA
from training.runs.serializers import (
    CheckpointOut,
    CrossValidationOut,
    LayersIn,
    ProfileIn,
    ProfileOut,
    RestoreIn,
    TrainingDetailOut,
    TrainingIn,
    TrainingOut,
)
from workers.jobs.output import files as output_files
from workers.jobs.output import logs, metrics
from workers.jobs.output.api import attempt_scope as asked
from workers.jobs.output.api.files import OutputOut
from workers.jobs.resource_request import Resources


class TrainingViewSet(ProgramViewSet):
    request_schema, filters = SCHEMA, TrainingFilters
    serializer_class, list_serializer_class, create_serializer_class = TrainingDetailOut, TrainingOut, TrainingIn
    view_permission, change_permission = Action.TRAINING_VIEW, Action.TRAINING_SUBMIT
    needs = {
        **dict.fromkeys(("pause", "resume", "suspend", "finish", "stop", "restore"), Action.TRAINING_CONTROL),
        **dict.fromkeys(("read_profile", "checkpoints", "cross_validation", "log", "metrics"), Action.TRAINING_VIEW),
        **dict.fromkeys(("files", "file_content", "file_zip"), Action.TRAINING_VIEW),
    }
    asks = {
        "files": ("attempt",),
        "file_content": ("path", "attempt"),
        "file_zip": ("attempt",),
        "log": ("offset", "limit", "attempt", "tail", "rank"),
        "metrics": ("key", "attempt"),
    }
    asks_many = ("key",)

    def paginate_queryset(self, queryset: Any) -> Any:
        trainings = super().paginate_queryset(queryset)
        results.add_newest_metrics(trainings or [])
        return trainings

    def get_object(self) -> TrainingJob:
        training: TrainingJob = super().get_object()
        results.add_newest_metrics([training])
        return training

    def answer(self, row: TrainingJob, status: int = 200) -> Response:
        return Response(self.get_serializer(row).data, status=status)

    def preview_resources(self, data: dict[str, Any]) -> Resources:
        fields = {name: value for name, value in data.items() if name not in CODE_FIELDS}
        if not fields.get("preset") and not fields.get("code") and fields.get("start_file"):  # code to be uploaded
            fields["command"] = fields.pop("start_file")
        return drafts.check(self.request.user, drafts.TrainingRequest(**fields)).resources

    @object_action(status=202)
    def pause(self, training: TrainingJob) -> TrainingJob:
        return steering.steer(training, "pause", by=self.request.user)

    @object_action(status=202, url_path="continue")
    def resume(self, training: TrainingJob) -> TrainingJob:
        return steering.steer(training, "continue", by=self.request.user)

    @object_action(status=202)
    def suspend(self, training: TrainingJob) -> TrainingJob:
        """Let it save and give its devices back; it waits, paused, until it is continued."""
        return steering.steer(training, "suspend", by=self.request.user)

    @object_action(status=202)
    def finish(self, training: TrainingJob) -> TrainingJob:
        return steering.steer(training, "finish", by=self.request.user)

    @object_action(status=202)
    def stop(self, training: TrainingJob) -> TrainingJob:
        return steering.steer(training, "stop", by=self.request.user)

    @object_action(RestoreIn, status=202, once=True)
    def restore(self, training: TrainingJob, **values: Any) -> TrainingJob:
        return jobs.restore(training, by=self.request.user, **values)

    @object_action(LayersIn, status=201, once=True)
    def layers(self, training: TrainingJob, **values: Any) -> TrainingJob:
        """Look into its layers by a short job, which leaves layers/layers.json and pictures among its files."""
        return previews.layers(training, by=self.request.user, **values)

    @object_action(ProfileIn, status=201, once=True)
    def profile(self, training: TrainingJob, **values: Any) -> TrainingJob:
        """Profile some of its steps by a short job, which leaves profile/profile.json among its files."""
        return previews.profile(training, by=self.request.user, **values)

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
    return SCHEMA.read(user, data)
