"""`/api/v1/reports/`: the same services as the pages."""

from __future__ import annotations

from functools import partial
from typing import Any

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import ids
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.lib.downloads import attachment
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet, object_action
from training.experiments.models import Visibility
from training.experiments.reports import exporting, writing
from training.experiments.reports.documents import LONGEST_BYTES
from training.experiments.reports.filters import ReportFilters
from training.experiments.reports.models import Report, ReportVersion
from training.experiments.reports.writing import LONGEST_TITLE


class ReportIn(StrictMixin, serializers.Serializer[Any]):
    title = serializers.CharField(max_length=LONGEST_TITLE)
    text = serializers.CharField(
        max_length=LONGEST_BYTES, allow_blank=True, default="", trim_whitespace=False,
        help_text="Markdown; blocks ```runs, ```curves, ```scatter and ```figure hold panels as YAML.",
    )  # fmt: skip
    visibility = serializers.ChoiceField(choices=Visibility.choices, default=Visibility.PRIVATE)


class ReportChangeIn(StrictMixin, serializers.Serializer[Any]):
    """What changes; what is left out stays."""

    version = serializers.IntegerField(min_value=1, help_text="The one that was read and changed.")
    title = serializers.CharField(max_length=LONGEST_TITLE, required=False)
    text = serializers.CharField(max_length=LONGEST_BYTES, allow_blank=True, required=False, trim_whitespace=False)
    visibility = serializers.ChoiceField(choices=Visibility.choices, required=False)


class ReportRestoreIn(StrictMixin, serializers.Serializer[Any]):
    version = serializers.IntegerField(min_value=1, help_text="The newest one, as it was read.")


class ReportOut(OutMixin, serializers.ModelSerializer[Report]):
    owner = serializers.CharField(source="owner.username")
    url = serializers.SerializerMethodField()

    class Meta:
        model = Report
        fields = ["id", "title", "owner", "visibility", "version", "created_at", "updated_at", "url"]
        read_only_fields = fields

    def get_url(self, report: Report) -> str:
        return f"/reports/{report.pk}/"


class ReportDetailOut(ReportOut):
    class Meta(ReportOut.Meta):
        fields = [*ReportOut.Meta.fields, "text"]
        read_only_fields = fields


class ReportVersionOut(OutMixin, serializers.ModelSerializer[ReportVersion]):
    made_by = serializers.SerializerMethodField(help_text="null where that account is gone.")

    class Meta:
        model = ReportVersion
        fields = ["number", "title", "made_by", "made_at", "restores"]
        read_only_fields = fields

    def get_made_by(self, version: ReportVersion) -> str | None:
        return version.made_by.username if version.made_by else None


class ReportVersionDetailOut(ReportVersionOut):
    class Meta(ReportVersionOut.Meta):
        fields = [*ReportVersionOut.Meta.fields, "text"]
        read_only_fields = fields


class ReportViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Texts with live panels over runs: own ones, and those that others show."""

    view_permission = change_permission = Action.TRAINING_VIEW
    serializer_class, list_serializer_class = ReportDetailOut, ReportOut
    create_serializer_class, change_serializer_class = ReportIn, ReportChangeIn
    filters, object_rows = ReportFilters, "with_text"

    def service_check(self) -> Any:
        return partial(writing.check, user=self.request.user)

    def create_object(self, **values: Any) -> Report:
        return writing.create(user=self.request.user, **values)

    def change_object(self, report: Report, **values: Any) -> Report:
        return writing.save(report, user=self.request.user, **values)

    def delete_object(self, report: Report) -> None:
        report.delete()

    @extend_schema(responses=ReportVersionOut(many=True))
    @action(detail=True)
    def versions(self, request: ApiRequest, pk: str) -> Response:
        """Its versions without their texts, the newest first."""
        rows = self.get_object().versions.select_related("made_by").defer("text")
        return Response(ReportVersionOut(rows, many=True).data)

    @extend_schema(responses=ReportVersionDetailOut)
    @action(detail=True, url_path="versions/(?P<number>[0-9]{1,9})")
    def version(self, request: ApiRequest, pk: str, number: str) -> Response:
        """One version with its text."""
        return Response(ReportVersionDetailOut(writing.version_of(self.get_object(), _number(number))).data)

    @object_action(ReportRestoreIn, url_path="versions/(?P<number>[0-9]{1,9})/restore")
    def restore(self, report: Report, number: str, version: int) -> Report:
        """Make an older version the newest again, as a version of its own."""
        return writing.restore(report, user=self.request.user, number=_number(number), version=version)

    @extend_schema(responses={(200, "text/html"): OpenApiTypes.STR})
    @action(detail=True)
    def export(self, request: ApiRequest, pk: str) -> HttpResponse:
        """The report as one file of HTML that needs nothing else, as the caller may see its runs now."""
        report = self.get_object()
        answer = HttpResponse(exporting.html(report, request.user), content_type="text/html; charset=utf-8")
        answer["Content-Disposition"] = attachment(exporting.file_name(report))
        return answer


def _number(text: str) -> int:
    return ids.number(text) or 0
