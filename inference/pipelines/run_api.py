"""`/api/v1/pipeline-runs/`, and questions that runs put: the same services as the pages."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, parse_request
from inference.pipelines import approvals, run_presentation, runs
from inference.pipelines.filters import RUNS
from inference.pipelines.models import Pipeline, PipelineRun, StepApproval, StepApprovalAnswer


class PipelineRunIn(StrictMixin, serializers.Serializer[Any]):
    version = serializers.IntegerField(
        min_value=1,
        required=False,
        allow_null=True,
        default=None,
        help_text="Version number; the newest version if omitted.",
    )
    parameters = serializers.DictField(default=dict)
    limit = serializers.IntegerField(
        min_value=1, max_value=runs.MAX_AT_ONCE, default=runs.LIMIT, help_text="Steps and items at once."
    )
    fail_fast = serializers.BooleanField(default=False, help_text="Start no further step once a step has failed.")
    use_cache = serializers.BooleanField(default=True, help_text="Take results of earlier runs where nothing changed.")


class PipelineRunOut(OutMixin, serializers.ModelSerializer[PipelineRun]):
    pipeline_name = serializers.CharField(source="pipeline.name")
    version = serializers.IntegerField(source="version.number")
    owner = serializers.CharField(source="owner.username")
    sentence = serializers.CharField(source="message")
    started: Any = serializers.DateTimeField(source="created_at")
    ended: Any = serializers.DateTimeField(source="ended_at")
    url = serializers.SerializerMethodField()

    class Meta:
        model = PipelineRun
        fields = [
            "id", "pipeline", "pipeline_name", "number", "version", "owner", "state", "sentence", "parameters",
            "trigger", "cancel", "limit", "fail_fast", "use_cache", "revision", "started", "ended", "url",
        ]  # fmt: skip
        read_only_fields = fields

    def get_url(self, run: PipelineRun) -> str:
        return run_presentation.run_page(run)

    def to_representation(self, run: PipelineRun) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(run)
        if run_presentation.is_open(run, self.context["request"].user):
            return shown
        closed = {"parameters": {}, "trigger": {"by": run.trigger.get("by", "")}, "sentence": ""}
        return shown | closed | ({"spec": run.version.spec} if "spec" in shown else {})


class PipelineRunDetailOut(PipelineRunOut):
    layout = serializers.JSONField(source="pipeline.layout")
    steps = serializers.SerializerMethodField(help_text="The newest attempt of each step, by its name.")

    class Meta(PipelineRunOut.Meta):
        fields = [*PipelineRunOut.Meta.fields, "spec", "layout", "steps"]
        read_only_fields = fields

    def get_steps(self, run: PipelineRun) -> dict[str, Any]:
        return run_presentation.steps_of(run, self.context["request"].user)


class StepIn(StrictMixin, serializers.Serializer[Any]):
    step = serializers.CharField(max_length=170)


class RetryIn(StepIn):
    use_cache = serializers.BooleanField(default=True, help_text="false: run the step again without cached results.")


class StepAnswerIn(StrictMixin, serializers.Serializer[Any]):
    answer = serializers.ChoiceField(choices=[(value, value) for value in approvals.ANSWERS])
    comment = serializers.CharField(max_length=500, default="", allow_blank=True)


class StepApprovalOut(serializers.ModelSerializer[StepApproval]):
    run: Any = serializers.IntegerField(source="step_run.run_id")
    step = serializers.CharField(source="step_run.step")
    state = serializers.CharField(source="step_run.state")
    people: Any = serializers.SlugRelatedField("username", many=True, read_only=True)

    class Meta:
        model = StepApproval
        fields = ["id", "run", "step", "state", "question", "people", "needed", "expires_at", "at_expiry"]
        read_only_fields = fields


class StepAnswerOut(serializers.ModelSerializer[StepApprovalAnswer]):
    person: Any = serializers.CharField(source="person.username")

    class Meta:
        model = StepApprovalAnswer
        fields = ["person", "answer", "comment", "at"]
        read_only_fields = fields


class PipelineRunViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Runs of pipelines. `?pipeline=` and `?state=` filter."""

    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "cancel": Action.JOBS_CONTROL,
        "retry": Action.JOBS_CONTROL,
        "skip": Action.JOBS_CONTROL,
    }
    asks = {"list": ("pipeline", "state")}
    orders = RUNS
    serializer_class = PipelineRunOut
    queryset = PipelineRun.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = PipelineRun.objects.visible_to(user)
        if self.action == "list":
            query = queries.read_filters(self.request)
            rows = rows.in_state(queries.read_choice(query, "state", *PipelineRun.State.values))
            if "pipeline" in query:
                pipelines = Pipeline.objects.visible_to(user)
                rows = rows.filter(pipeline=get_object_or_404(pipelines, pk=queries.read_int(query, "pipeline")))
        elif self.action != "retrieve":
            rows = rows.editable_by(user)
        return rows.for_list().with_open(user)

    def get_serializer_class(self) -> Any:
        return PipelineRunOut if self.action == "list" else PipelineRunDetailOut

    def answer(self, run: PipelineRun) -> Response:
        return Response(PipelineRunDetailOut(run, context=self.get_serializer_context()).data, status=202)

    @extend_schema(request=None, responses={202: PipelineRunDetailOut})
    @action(detail=True, methods=["post"])
    def cancel(self, request: ApiRequest, pk: str) -> Response:
        """Begin nothing more, and stop what is under way."""
        return self.answer(runs.cancel(self.get_object()))

    @extend_schema(request=RetryIn, responses={202: PipelineRunDetailOut})
    @action(detail=True, methods=["post"])
    def retry(self, request: ApiRequest, pk: str) -> Response:
        """Do a step and all that comes after it again."""
        return self.answer(runs.retry(self.get_object(), by=request.user, **parse_request(RetryIn(data=request.data))))

    @extend_schema(request=StepIn, responses={202: PipelineRunDetailOut})
    @action(detail=True, methods=["post"])
    def skip(self, request: ApiRequest, pk: str) -> Response:
        """Leave out a step that waits, and with it what needs it."""
        return self.answer(runs.skip(self.get_object(), **parse_request(StepIn(data=request.data))))


class StepApprovalViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Open questions of pipelines that are put to this person."""

    needs = {
        "list": Action.SELF_MANAGE,
        "retrieve": Action.SELF_MANAGE,
        "answer": Action.SELF_MANAGE,
    }
    serializer_class = StepApprovalOut
    queryset = StepApproval.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = StepApproval.objects.visible_to(user).put_to(user).select_related("step_run").prefetch_related("people")
        return rows.filter(step_run__state="asking") if self.action == "list" else rows

    @extend_schema(request=StepAnswerIn, responses={201: StepAnswerOut})
    @action(detail=True, methods=["post"])
    def answer(self, request: ApiRequest, pk: str) -> Response:
        """Answer it, once."""
        row = approvals.answer(self.get_object(), by=request.user, **parse_request(StepAnswerIn(data=request.data)))
        return Response(StepAnswerOut(row).data, status=201)
