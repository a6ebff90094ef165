"""API of triggers, and the door that webhooks knock at."""

from __future__ import annotations

import json
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib import queries, rates, signatures
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, StrictMixin, VisibleField, parse_request
from aiplatform.lib.errors import Invalid
from aiplatform.lib.idempotency import once
from aiplatform.lib.parsers import is_sound
from datasets.models import Dataset
from inference.pipelines import trigger_settings
from inference.pipelines.models import Firing, Pipeline, PipelineTrigger
from inference.serving.models import Service

MAX_CALLS_PER_MINUTE = 300  # of one address, at all webhooks, proven or not


class FiringOut(OutMixin, serializers.ModelSerializer[Firing]):
    sentence = serializers.CharField(source="message")

    class Meta:
        model = Firing
        fields = ["key", "run", "sentence", "at"]
        read_only_fields = fields


class TriggerOut(OutMixin, serializers.ModelSerializer[PipelineTrigger]):
    owner = serializers.CharField(source="owner.username")
    sentence = serializers.CharField(source="message", help_text="Why the newest firing began no run.")
    version = serializers.IntegerField(
        source="agreed", help_text="The one that it runs: the newest that its owner saved or took over; 0: none."
    )
    next_times = serializers.SerializerMethodField(help_text="Of a schedule: the next five.")
    url = serializers.SerializerMethodField(help_text="Where a webhook is delivered.")

    class Meta:
        model = PipelineTrigger
        fields = [
            "id", "pipeline", "owner", "kind", "is_on", "schedule", "zone", "missed", "dataset", "service", "rule",
            "busy", "parameters", "version", "sentence", "next_times", "url", "older_until", "created_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_next_times(self, trigger: PipelineTrigger) -> list[str]:
        return [moment.isoformat() for moment in trigger_settings.next_times(trigger)]

    def get_url(self, trigger: PipelineTrigger) -> str:
        return hook_path(trigger) if trigger.kind == PipelineTrigger.Kind.WEBHOOK else ""


class TriggerMadeOut(TriggerOut):
    secret = serializers.CharField(help_text="Secret of a webhook; shown only in this response.")

    class Meta(TriggerOut.Meta):
        fields = [*TriggerOut.Meta.fields, "secret"]
        read_only_fields = fields


class TriggerIn(StrictMixin, serializers.Serializer[Any]):
    pipeline = VisibleField(Pipeline)
    kind = serializers.ChoiceField(choices=PipelineTrigger.Kind.choices)
    schedule = serializers.CharField(max_length=200, default="", allow_blank=True, help_text="Five fields of cron.")
    zone = serializers.CharField(max_length=64, default="", allow_blank=True, help_text="Left out: your own.")
    missed = serializers.ChoiceField(choices=PipelineTrigger.Missed.choices, default="latest")
    dataset = VisibleField(Dataset, to_use=True, required=False, allow_null=True, default=None)
    service = VisibleField(Service, required=False, allow_null=True, default=None)
    rule = serializers.CharField(max_length=30, default="", allow_blank=True)
    busy = serializers.ChoiceField(choices=PipelineTrigger.Busy.choices, default="skip")
    parameters = serializers.DictField(default=dict)


class RotateIn(StrictMixin, serializers.Serializer[Any]):
    at_once = serializers.BooleanField(default=False, help_text="The older secrets end now.")


class TriggerChangeIn(StrictMixin, serializers.Serializer[Any]):
    is_on = serializers.BooleanField(required=False)
    version = serializers.IntegerField(min_value=1, required=False, help_text="The one that it runs from now on.")


def hook_path(trigger: PipelineTrigger) -> str:
    """Where a webhook is delivered."""
    return f"/api/v1/pipeline-hooks/{trigger.pk}/"


class TriggerViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """What begins runs by itself. `?pipeline=` filters."""

    needs = {
        "list": Action.JOBS_VIEW,
        "retrieve": Action.JOBS_VIEW,
        "firings": Action.JOBS_VIEW,
        "create": Action.JOBS_SUBMIT,
        "partial_update": Action.JOBS_SUBMIT,
        "destroy": Action.JOBS_SUBMIT,
        "rotate": Action.JOBS_SUBMIT,
    }
    asks = {"list": ("pipeline",)}
    serializer_class = TriggerOut
    queryset = PipelineTrigger.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = PipelineTrigger.objects.visible_to(user).select_related("owner", "pipeline")
        if self.action in ("partial_update", "destroy", "rotate"):
            rows = rows.editable_by(user)
        if self.action == "list" and (number := queries.read_int(queries.read_filters(self.request), "pipeline")):
            rows = rows.filter(pipeline=number)
        return rows

    @extend_schema(request=TriggerIn, responses={201: TriggerMadeOut})
    @once
    def create(self, request: ApiRequest) -> Response:
        """Set up a trigger; its runs run as oneself."""
        params = parse_request(TriggerIn(data=request.data, context=self.get_serializer_context()))
        pipeline = params.pop("pipeline")
        if not Pipeline.objects.editable_by(request.user).filter(pk=pipeline.pk).exists():
            self.permission_denied(request)
        trigger, secret = trigger_settings.create(pipeline, user=request.user, **params)
        shown = TriggerOut(trigger, context=self.get_serializer_context()).data
        return Response({**shown, "secret": secret}, status=201)

    @extend_schema(request=TriggerChangeIn, responses=TriggerOut)
    def partial_update(self, request: ApiRequest, pk: str) -> Response:
        """Switch it on or off, or have it run another version; but for switching off, its owner alone."""
        trigger, params = self.get_object(), parse_request(TriggerChangeIn(data=request.data))
        with transaction.atomic():
            if "version" in params:
                trigger = trigger_settings.agree(trigger, params["version"], by=request.user)
            if "is_on" in params:
                trigger = trigger_settings.switch(trigger, on=params["is_on"], by=request.user)
        return Response(TriggerOut(trigger, context=self.get_serializer_context()).data)

    def destroy(self, request: ApiRequest, pk: str) -> Response:
        """Delete it; its runs stay."""
        self.get_object().delete()
        return Response(status=204)

    @extend_schema(request=RotateIn, responses=TriggerMadeOut)
    @action(detail=True, methods=["post"])
    def rotate(self, request: ApiRequest, pk: str) -> Response:
        """Give a webhook a new secret, shown only once; the previous one remains valid for a day. Owner only."""
        params = parse_request(RotateIn(data=request.data))
        trigger, secret = trigger_settings.rotate(self.get_object(), by=request.user, at_once=params["at_once"])
        shown = TriggerOut(trigger, context=self.get_serializer_context()).data
        return Response({**shown, "secret": secret}, headers={"Cache-Control": "no-store"})

    @extend_schema(responses=FiringOut(many=True))
    @action(detail=True, pagination_class=None)
    def firings(self, request: ApiRequest, pk: str) -> Response:
        """What it answered, the newest first, at most a hundred."""
        return Response(FiringOut(self.get_object().firings.all()[:100], many=True).data)


class HookAnswer(serializers.Serializer[Any]):
    run = serializers.IntegerField()


class HookView(APIView):
    """Where webhooks are delivered. Only who knows the trigger's secret begins a run, and each delivery once."""

    authentication_classes = []
    permission_classes = [AllowAny]
    parser_classes = []

    @extend_schema(
        request={"application/json": OpenApiTypes.OBJECT},
        responses={202: HookAnswer},
        parameters=[OpenApiParameter(signatures.HEADER, str, OpenApiParameter.HEADER, required=True)],
    )
    def post(self, request: Request, pk: int) -> Response:
        """Begin a run, or name the one that this delivery began."""
        trigger = (
            PipelineTrigger.objects.filter(pk=pk, kind=PipelineTrigger.Kind.WEBHOOK).select_related("owner").first()
        )
        address = request.META.get("REMOTE_ADDR")  # who knows no secret uses up no delivery of who does
        rates.limit(f"pipeline-hook-{address}", max_count=MAX_CALLS_PER_MINUTE, within_s=60)
        body = request._request.read(trigger_settings.MAX_BODY_BYTES + 1)
        if len(body) > trigger_settings.MAX_BODY_BYTES:
            raise Invalid(
                _("A delivery can have at most %(most)s KiB.") % {"most": trigger_settings.MAX_BODY_BYTES >> 10}
            )
        signature = request.headers.get(signatures.HEADER, "")
        run = trigger_settings.delivered(trigger, signature=signature, body=body, facts=_facts(body))
        return Response({"run": run.pk if run else None}, status=202)


def _facts(body: bytes) -> dict[str, Any]:
    """Return the content of a delivery, where it is a small JSON object; it is stored with the run."""
    try:
        payload = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        return {}
    return {"payload": payload} if isinstance(payload, dict) and is_sound(payload) else {}
