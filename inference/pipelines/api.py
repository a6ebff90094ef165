"""`/api/v1/pipelines/`, their runs, and questions that they put: the same services as the pages."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, parse_request
from aiplatform.lib.errors import Invalid, NotFound
from aiplatform.lib.idempotency import once
from aiplatform.objects.viewsets import ChangeObject, CreateObject, DeleteObject, ObjectViewSet
from inference.pipelines import checks, graph, kinds, pipeline_warnings, runs, writing
from inference.pipelines.filters import PipelineFilters
from inference.pipelines.models import (
    Pipeline,
    PipelineDraft,
    PipelineVersion,
)
from inference.pipelines.run_api import PipelineRunDetailOut, PipelineRunIn
from inference.pipelines.text_views import changes_of, text_of

MAX_VERSIONS = 100  # of one answer, each with its specification


class PipelineOut(OutMixin, serializers.ModelSerializer[Pipeline]):
    owner = serializers.CharField(source="owner.username")
    version = serializers.IntegerField(source="newest", default=None, help_text="Number of the newest; null: none yet.")
    runs = serializers.IntegerField(source="run_count", default=0, help_text="How many there were.")
    last_run = serializers.IntegerField(default=None, help_text="The newest run.")
    last_state = serializers.CharField(default=None, help_text="What became of the newest run.")
    url = serializers.SerializerMethodField()

    class Meta:
        model = Pipeline
        fields = [
            "id", "name", "description", "owner", "visibility", "version", "runs", "last_run", "last_state",
            "created_at", "updated_at", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_url(self, pipeline: Pipeline) -> str:
        return f"/pipelines/{pipeline.pk}/"


class PipelineDetailOut(PipelineOut):
    """With the specification of its newest version; null while there is none."""

    spec = serializers.SerializerMethodField()

    class Meta(PipelineOut.Meta):
        fields = [*PipelineOut.Meta.fields, "spec", "layout"]
        read_only_fields = fields

    def get_spec(self, pipeline: Pipeline) -> dict[str, Any] | None:
        version = writing.newest(pipeline)
        return version.spec if version else None


class PipelineIn(StrictMixin, serializers.Serializer[Any]):
    name = serializers.CharField(max_length=writing.MAX_NAME_LENGTH)
    description = serializers.CharField(max_length=writing.MAX_DESCRIPTION_LENGTH, default="", allow_blank=True)
    visibility = serializers.ChoiceField(choices=Pipeline.Visibility.choices, default=Pipeline.Visibility.PRIVATE)
    spec = serializers.DictField(
        required=False, allow_null=True, default=None, help_text="Content of the first version."
    )
    layout = serializers.DictField(required=False, allow_null=True, default=None, help_text="Positions of the steps.")


class PipelineChangeIn(StrictMixin, serializers.Serializer[Any]):
    name = serializers.CharField(max_length=writing.MAX_NAME_LENGTH, required=False)
    description = serializers.CharField(max_length=writing.MAX_DESCRIPTION_LENGTH, allow_blank=True, required=False)
    visibility = serializers.ChoiceField(choices=Pipeline.Visibility.choices, required=False)


class SpecIn(StrictMixin, serializers.Serializer[Any]):
    spec = serializers.DictField()


class ProblemOut(serializers.Serializer[Any]):
    step = serializers.CharField(help_text='"" is the pipeline as a whole.')
    field = serializers.CharField(help_text='An input, a parameter, or another part of the step; "" is the whole.')
    message = serializers.CharField()
    level = serializers.ChoiceField(["error", "warning"], help_text="A warning does not keep it from running.")


class ProblemsOut(serializers.Serializer[Any]):
    problems = ProblemOut(many=True)


class DraftOut(serializers.ModelSerializer[PipelineDraft]):
    """What this person draws. `revision` 0: nothing is kept yet, it is the newest version."""

    class Meta:
        model = PipelineDraft
        fields = ["revision", "spec", "layout", "base"]
        read_only_fields = fields


class DraftIn(StrictMixin, serializers.Serializer[Any]):
    spec = serializers.DictField()
    layout = serializers.DictField(default=dict)


class PipelineVersionOut(serializers.ModelSerializer[PipelineVersion]):
    created_by: Any = serializers.CharField(source="created_by.username", default=None)

    class Meta:
        model = PipelineVersion
        fields = ["number", "sha256", "note", "created_by", "created_at", "spec"]
        read_only_fields = fields


class PipelineVersionIn(StrictMixin, serializers.Serializer[Any]):
    spec = serializers.DictField(required=False, allow_null=True, default=None, help_text="Left out: the own draft.")
    layout = serializers.DictField(required=False, allow_null=True, default=None)
    note = serializers.CharField(max_length=writing.MAX_NOTE_LENGTH, default="", allow_blank=True)


class PipelineTextOut(serializers.Serializer[Any]):
    version = serializers.IntegerField()
    text = serializers.CharField()


class PipelineChangeOut(serializers.Serializer[Any]):
    step = serializers.CharField()
    what = serializers.CharField()
    sentence = serializers.CharField()


class PipelineViewSet(CreateObject, ChangeObject, DeleteObject, ObjectViewSet):
    """Pipelines. `?search=` finds, `?name=` is exact."""

    view_permission, change_permission = Action.JOBS_VIEW, Action.JOBS_SUBMIT
    needs = dict.fromkeys(("catalogue", "versions", "text", "diff"), Action.JOBS_VIEW) | {
        "destroy": Action.JOBS_CONTROL
    }
    reach = {"draft": "editable_by", "runs": ""}
    asks = {"text": ("version", "as"), "diff": ("a", "b")}
    serializer_class, list_serializer_class = PipelineDetailOut, PipelineOut
    create_serializer_class, change_serializer_class = PipelineIn, PipelineChangeIn
    filters = PipelineFilters

    def service_check(self) -> Any:
        return writing.check_about

    def create_object(self, **values: Any) -> Pipeline:
        return writing.create(user=self.request.user, **values)

    def change_object(self, pipeline: Pipeline, **values: Any) -> Pipeline:
        return writing.change(pipeline, **values)

    def delete_object(self, pipeline: Pipeline) -> None:
        writing.delete(pipeline)

    @extend_schema(responses=dict)
    @action(detail=False, pagination_class=None)
    def catalogue(self, request: ApiRequest) -> Response:
        """All step kinds with their inputs, outputs and parameters."""
        return Response(kinds.catalogue(request.user))

    @extend_schema(request=SpecIn, responses=ProblemsOut)
    @action(detail=False, methods=["post"])
    def check(self, request: ApiRequest) -> Response:
        """What keeps a specification from running, as this person, and what may go wrong when it does."""
        spec = graph.parse(parse_request(SpecIn(data=request.data))["spec"])
        problems = [*checks.problems(spec, request.user), *pipeline_warnings.list_warnings(spec)]
        return Response(ProblemsOut({"problems": problems}).data)

    @extend_schema(responses=DraftOut)
    @action(detail=True)
    def draft(self, request: ApiRequest, pk: str) -> Response:
        """What this person draws; the answer's ETag is what `If-Match` of the next writer says."""
        return _draft_answer(writing.draft_of(self.get_object(), request.user))

    @extend_schema(
        request=DraftIn, responses=DraftOut, parameters=[OpenApiParameter("If-Match", str, OpenApiParameter.HEADER)]
    )
    @draft.mapping.put
    def keep_draft(self, request: ApiRequest, pk: str) -> Response:
        """Keep what this person draws, where `If-Match` names the revision that it began from; else 412."""
        pipeline = self.get_object()
        params = parse_request(DraftIn(data=request.data))
        revision = _revision(request.headers.get("If-Match", ""))
        return _draft_answer(writing.keep_draft(pipeline, request.user, revision=revision, **params))

    @extend_schema(request=None, responses={204: None})
    @draft.mapping.delete
    def drop_draft(self, request: ApiRequest, pk: str) -> Response:
        """Forget what this person drew since the newest version."""
        writing.drop_draft(self.get_object(), request.user)
        return Response(status=204)

    @extend_schema(responses=PipelineVersionOut(many=True))
    @action(detail=True, pagination_class=None)
    def versions(self, request: ApiRequest, pk: str) -> Response:
        """The newest hundred versions, the newest first."""
        rows = self.get_object().versions.select_related("created_by")[:MAX_VERSIONS]
        return Response(PipelineVersionOut(rows, many=True).data)

    @extend_schema(request=PipelineVersionIn, responses={201: PipelineVersionOut})
    @versions.mapping.post
    def save_version(self, request: ApiRequest, pk: str) -> Response:
        """Save a version; the same meaning as the newest one gives that one back."""
        pipeline = self.get_object()
        params = parse_request(PipelineVersionIn(data=request.data))
        version = writing.save_version(pipeline, user=request.user, **params)
        return Response(PipelineVersionOut(version).data, status=201)

    @extend_schema(
        parameters=[OpenApiParameter("version", int), OpenApiParameter("as", str, enum=["yaml", "python"])],
        responses=PipelineTextOut,
    )
    @action(detail=True, pagination_class=None)
    def text(self, request: ApiRequest, pk: str) -> Response:
        """A version as YAML or Python; the newest when left out."""
        pipeline = self.get_object()
        query = queries.read_filters(request)
        form = queries.read_choice(query, "as", "yaml", "python") or "yaml"
        version = self._version(pipeline, queries.read_int(query, "version"))
        return Response({"version": version.number, "text": text_of(pipeline, version, form)})

    @extend_schema(
        parameters=[OpenApiParameter("a", int), OpenApiParameter("b", int)], responses=PipelineChangeOut(many=True)
    )
    @action(detail=True, pagination_class=None)
    def diff(self, request: ApiRequest, pk: str) -> Response:
        """What differs between the versions `a` and `b`."""
        pipeline, query = self.get_object(), queries.read_filters(request)
        a, b = (self._version(pipeline, queries.read_int(query, name)) for name in ("a", "b"))
        return Response(PipelineChangeOut(changes_of(a, b), many=True).data)

    @staticmethod
    def _version(pipeline: Pipeline, number: int | None) -> PipelineVersion:
        version = pipeline.versions.filter(number=number).first() if number else writing.newest_or_refused(pipeline)
        if version is None:
            raise NotFound(_("%(name)s has no version %(number)s.") % {"name": pipeline.name, "number": number})
        return version

    @extend_schema(request=PipelineRunIn, responses={201: PipelineRunDetailOut})
    @action(detail=True, methods=["post"])
    @once
    def runs(self, request: ApiRequest, pk: str) -> Response:
        """Begin a run, as oneself."""
        pipeline = self.get_object()
        params = parse_request(PipelineRunIn(data=request.data))
        version = self._version(pipeline, params.pop("version"))
        run = runs.start(user=request.user, version=version, **params)
        return Response(PipelineRunDetailOut(run, context=self.get_serializer_context()).data, status=201)


def _draft_answer(draft: PipelineDraft) -> Response:
    return Response(DraftOut(draft).data, headers={"ETag": f'"{draft.revision}"'})


def _revision(header: str) -> int:
    """The revision that a writer names.

    Raises:
        Invalid: none.
    """
    text = header.strip().removeprefix("W/").strip('"')
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise Invalid(_("Send the revision of the draft that you edited in If-Match."), field="If-Match")
    return int(text)
