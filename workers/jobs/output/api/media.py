"""`/api/v1/jobs/{id}/media/{,series/,N/file/}`: what a job shows besides curves."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib import downloads, queries
from aiplatform.lib.api import NumberedViewSet, OldestFirstPagination
from aiplatform.lib.message_field import MessageOut
from workers.core.models import Job, MediaItem, MediaSeries
from workers.jobs.output import media
from workers.jobs.output.api import attempt_scope
from workers.jobs.output.reporting import notes

KINDS = [str(kind) for kind in MediaSeries.Kind]
ATTEMPT = OpenApiParameter("attempt", int, description="The newest unless given.")
KIND = OpenApiParameter("kind", str, enum=KINDS)
ITEM = OpenApiParameter("item", int, OpenApiParameter.PATH)


class MediaItemOut(serializers.ModelSerializer):
    """One step of a series. `facts` depend on the kind; content in a file has a `file_url`."""

    kind = serializers.CharField(source="series.kind", read_only=True)
    name = serializers.CharField(source="series.name", read_only=True)
    file_url = serializers.SerializerMethodField()
    facts = serializers.DictField(child=serializers.JSONField(), read_only=True)

    class Meta:
        model = MediaItem
        fields = ["id", "kind", "name", "step", "at", "facts", "size_bytes", "file_url"]

    def get_file_url(self, item: MediaItem) -> str | None:
        return reverse("api-job-media-content", args=[self.context["job"].pk, item.pk]) if item.file else None


class MediaSeriesOut(serializers.ModelSerializer):
    steps = serializers.IntegerField(help_text="How many of them are kept.")
    first_step = serializers.IntegerField(allow_null=True)
    last_step = serializers.IntegerField(allow_null=True)

    class Meta:
        model = MediaSeries
        fields = ["kind", "name", "seen", "stride", "refused", "steps", "first_step", "last_step"]
        extra_kwargs = {
            "seen": {"help_text": "Steps that came."},
            "stride": {"help_text": "Of many every so manieth is kept."},
            "refused": {"help_text": "Steps that were damaged, too large or too many."},
        }


class NoteOut(serializers.Serializer):
    message = MessageOut(source="*", read_only=True)
    sentence = serializers.CharField(source="*", read_only=True, help_text="`message` in the caller's language.")


class MediaOverviewOut(serializers.Serializer):
    series = MediaSeriesOut(many=True)
    notes = NoteOut(many=True, help_text="What was not kept of the files in which the program reports.")


#: A figure is a page of the user's program: without an origin, it reaches nothing of the platform or the network.
FIGURE_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; frame-ancestors 'self'"
)


class JobMediaViewSet(NumberedViewSet):
    """Images, figures, sounds, videos, histograms, texts, tables, graphs and vectors of the caller's visible jobs."""

    needs = {"items": Action.JOBS_VIEW, "series": Action.JOBS_VIEW, "content": Action.JOBS_VIEW}
    asks = {
        "items": ("kind", "name", "step", "attempt", *queries.PAGING),
        "series": ("kind", "attempt"),
        "content": (),
    }
    serializer_class = MediaItemOut
    pagination_class = OldestFirstPagination
    queryset = Job.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return Job.objects.visible_to(user)

    @extend_schema(
        parameters=[KIND, OpenApiParameter("name", str), OpenApiParameter("step", int), ATTEMPT],
        responses=MediaItemOut(many=True),
    )
    @action(detail=True, url_path="media")
    def items(self, request: Request, pk: str) -> Response:
        """What is kept, in the order in which it came; `kind`, `name` and `step` choose."""
        job, params = self.get_object(), queries.read_filters(request)
        rows = media.items_of(job, attempt=attempt_scope.attempt(job, params))
        if kind := queries.read_choice(params, "kind", *KINDS):
            rows = rows.filter(series__kind=kind)
        if name := params.get("name"):
            rows = rows.filter(series__name=name)
        if (step := queries.read_int(params, "step")) is not None:
            rows = rows.filter(step=step)
        page = self.paginate_queryset(rows)
        out = MediaItemOut(page, many=True, context={"job": job})
        return self.get_paginated_response(out.data)

    @extend_schema(parameters=[KIND, ATTEMPT], responses=MediaOverviewOut)
    @action(detail=True, url_path="media/series", pagination_class=None, filter_backends=[])
    def series(self, request: Request, pk: str) -> Response:
        """Its series: names, first and last step, how many came and how many are kept; and what could not be read."""
        job, params = self.get_object(), queries.read_filters(request)
        number = attempt_scope.attempt(job, params)
        rows = media.series_of(job, attempt=number, kind=queries.read_choice(params, "kind", *KINDS))
        overview = {"series": rows, "notes": notes.list_messages(media.missed(job, attempt=number))}
        return Response(MediaOverviewOut(overview).data, headers={"Cache-Control": "private, no-store"})

    @extend_schema(
        parameters=[ITEM],
        responses={
            (200, kind): OpenApiResponse(OpenApiTypes.BINARY) for kind in sorted(set(media.CONTENT_TYPES.values()))
        },
    )
    @action(detail=True, url_path=r"media/(?P<item>[0-9]{1,18})/file", pagination_class=None, filter_backends=[])
    def content(self, request: Request, pk: str, item: str) -> Any:
        """The file of one: an image is a PNG or JPEG that the platform wrote; a figure is a sandboxed page."""
        job = self.get_object()
        row = media.item_of(job, int(item))
        try:
            descriptor = media.open_file(row) if row else None
        except OSError:
            descriptor = None
        if row is None or descriptor is None:
            raise Http404
        response = downloads.send_file(request._request, descriptor, row.file, inline=True)
        suffix = row.file.rpartition(".")[2]
        if suffix not in ("png", "jpg", "json"):  # stored as the program wrote it; its first bytes were checked
            response["Content-Type"] = media.CONTENT_TYPES[suffix]
            response["Content-Disposition"] = downloads.attachment(row.file, inline=True)
        if suffix == "html":
            response["Content-Security-Policy"] = FIGURE_POLICY
            response["X-Frame-Options"] = "SAMEORIGIN"
        response["Cache-Control"] = "private, max-age=86400, immutable"  # another content has another name
        return response
