"""API of watched videos."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import VisibleField, parse_request
from aiplatform.lib.downloads import send_file
from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.idempotency import once_in_parts
from aiplatform.objects.viewsets import DeleteObject, ObjectViewSet
from datasets.models import Upload
from inference.evaluation.jobs.api import JOB_FIELDS, ModelJobIn, ModelJobOut, ModelJobViewSet
from inference.registry.uploads import on_disk
from inference.video import analyses, files, results, streams
from inference.video.filters import VIDEO_EVENTS, VideoFileFilters, VideoFilters
from inference.video.models import VideoAnalysis, VideoEvent, VideoFile

SOURCES = ("file", "upload", "video", "url")


class VideoFileOut(OutMixin, serializers.ModelSerializer):
    """An uploaded video."""

    owner = serializers.CharField(source="owner.username", read_only=True)

    class Meta:
        model = VideoFile
        fields = ["id", "name", "owner", "size_bytes", "sha256", "created_at"]


class VideoEventOut(OutMixin, serializers.ModelSerializer):
    """Something that happened: `at` are seconds since the source began, `area` its box in shares of the picture."""

    class Meta:
        model = VideoEvent
        fields = [
            "key", "at", "type", "place", "way", "object", "class_id", "class_name", "score", "area", "seconds",
            "happened_at",
        ]  # fmt: skip


class VideoOut(ModelJobOut):
    """An analysis of a video; `summary` is empty until it has ended."""

    source: Any = serializers.CharField(source="source_label", read_only=True)

    class Meta:
        model = VideoAnalysis
        fields = [
            *JOB_FIELDS, "model", "model_version", "video", "source", "is_stream", "params", "summary", "webhook_url",
            "webhook_secret", "created_at", "ended_at",
        ]  # fmt: skip
        read_only_fields = fields

    def to_representation(self, analysis: VideoAnalysis) -> dict[str, Any]:
        """The secret that signs webhooks is for those who may change the analysis."""
        content: dict[str, Any] = super().to_representation(analysis)
        user = getattr(self.context.get("request"), "user", None)
        if user is None or not (user.sees_everything or analysis.job.owner_id == user.pk):
            content["webhook_secret"] = ""
        return content


class VideoIn(ModelJobIn):
    """A new analysis: a detector, one of `file`, `upload`, `video` and `url`, what is counted, resources."""

    file = serializers.FileField(required=False)
    upload = VisibleField(Upload, required=False, help_text="The id of a finished upload.")
    video = VisibleField(VideoFile, to_use=True, required=False, help_text="The id of an uploaded video.")
    url = serializers.CharField(
        required=False, max_length=streams.MAX_LENGTH,
        help_text="The address of a stream: rtsp, rtsps, http or https; its name and password are kept secret.",
    )  # fmt: skip
    places = serializers.JSONField(
        required=False, default=dict,
        help_text='{"lines": [{"name", "points": [[x, y], [x, y]]}], "zones": [{"name", "points", "loiter_s"}]}; '
        "points are fractions of the image sides, 0..1.",
    )  # fmt: skip
    classes = serializers.ListField(
        child=serializers.CharField(max_length=100), required=False, default=list, max_length=1000,
        help_text="Names of the classes to follow; none: all.",
    )  # fmt: skip
    min_score = serializers.FloatField(required=False, allow_null=True, default=None)
    max_rate = serializers.FloatField(
        required=False, allow_null=True, default=None, help_text="Maximum frames per second."
    )
    film = serializers.BooleanField(required=False, default=True, help_text="Whether an annotated video is written.")
    interval_s = serializers.FloatField(required=False, default=analyses.INTERVAL_S)
    still_s = serializers.FloatField(
        required=False, default=analyses.STILL_S,
        help_text="Seconds after which a frozen or black stream is reported; 0: never.",
    )  # fmt: skip
    webhook_url = serializers.CharField(max_length=500, required=False, default="", allow_blank=True)
    nodes = None  # type: ignore[assignment]  # takes the inherited field away, as DRF has it


class VideoViewSet(ModelJobViewSet):
    """Analyses of videos. `?state=` filters (a state, or a group such as running or completed), `?search=` finds.

    `events/?type=` and `?place=` leave events of a type, or of one line or zone.
    """

    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    needs = dict.fromkeys(("results", "events", "film"), Action.EVALUATIONS_VIEW)
    asks = {"events": ("type", "place", "limit", "cursor")}
    serializer_class = VideoOut
    filters = VideoFilters

    @extend_schema(request=VideoIn, responses={201: VideoOut})
    @once_in_parts
    def create(self, request: ApiRequest) -> Response:
        """Queue an analysis of a video that is sent along, of a finished upload, or of an uploaded video."""
        serializer = VideoIn(data=request.data, context=self.get_serializer_context())
        params = parse_request(serializer, analyses.check)
        sources = {name: params.pop(name) for name in SOURCES if name in params}
        if len(sources) != 1:
            message = _(
                "Send a file, the id of a completed upload or of an uploaded video, or the address of a stream."
            )
            raise Invalid(message, field="file")
        analyses.check_decoder()
        analyses.check(model_version=params["model_version"])
        if "url" in sources:
            analysis = analyses.submit(user=request.user, url=sources["url"], **params)
        else:
            analysis = analyses.submit(user=request.user, video=_video(request, sources), **params)
        return Response(VideoOut(analysis, context=self.get_serializer_context()).data, status=201)

    @extend_schema(responses=dict)
    @action(detail=True, methods=["get"])
    def results(self, request: ApiRequest, pk: str) -> Response:
        """Counts of objects, lines, zones and intervals; also while it runs."""
        return Response(results.load(self.get_object()))

    @extend_schema(responses=VideoEventOut(many=True))
    @action(detail=True, methods=["get"])
    def events(self, request: ApiRequest, pk: str) -> Response:
        """What happened, in its order; also while it runs."""
        query = queries.read_filters(request)
        kind = queries.read_choice(query, "type", *VideoEvent.Type.values)
        rows = VideoEvent.objects.visible_to(request.user).filter(analysis=self.get_object())
        self.orders = VIDEO_EVENTS  # type: ignore[misc]  # of this action alone
        page = self.paginate_queryset(rows.narrowed(type=kind, place_name=query.get("place", "")))
        return self.get_paginated_response(VideoEventOut(page, many=True).data)

    @extend_schema(responses={(200, "video/webm"): bytes})
    @action(detail=True, methods=["get"])
    def film(self, request: ApiRequest, pk: str) -> HttpResponseBase:
        """The annotated film; `Range` is honoured."""
        analysis: VideoAnalysis = self.get_object()
        opened = results.opened(analysis, results.FILM)
        if opened is None:
            raise NotFound(_("The annotated video does not exist yet, or was disabled."))
        return send_file(request._request, opened, f"{analysis.job.name}.webm", inline=True)


class VideoFileViewSet(DeleteObject, ObjectViewSet):
    """Uploaded videos. `?search=` finds by name."""

    view_permission, change_permission = Action.EVALUATIONS_VIEW, Action.EVALUATIONS_SUBMIT
    serializer_class = VideoFileOut
    filters = VideoFileFilters
    forbids_change = True

    def delete_object(self, video: VideoFile) -> None:
        files.delete(video=video)


def _video(request: ApiRequest, sources: dict[str, Any]) -> VideoFile:
    """The named video, or what was sent, kept as one."""
    if "video" in sources:
        return sources["video"]
    with _bytes(sources) as (source, filename):
        return files.store(user=request.user, source=source, filename=filename)


def _bytes(sources: dict[str, Any]) -> AbstractContextManager[tuple[Path, str]]:
    if "file" in sources:
        return on_disk(sources["file"])
    upload = sources["upload"]
    if upload.state == type(upload).State.OPEN:
        raise Invalid(_("This upload is not complete yet."), field="upload")
    return nullcontext((upload.file, upload.filename))
