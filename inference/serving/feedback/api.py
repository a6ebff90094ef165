"""API of pictures that came back, below /services/<id>/."""

from __future__ import annotations

import json
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin
from aiplatform.lib.parsers import CarefulMultiPartParser
from aiplatform.lib.titles import TITLE
from inference.serving.feedback import samples
from inference.serving.feedback.models import ServiceSample


class ServiceSampleOut(OutMixin, serializers.ModelSerializer):
    """A picture that was answered wrongly, or that a rule kept (`why`)."""

    by = serializers.CharField(source="by.username", read_only=True, default="")

    class Meta:
        model = ServiceSample
        fields = [
            "id",
            "sha256",
            "width",
            "height",
            "size_bytes",
            "model_name",
            "answers",
            "note",
            "why",
            "device",
            "by",
            "at",
        ]


class ServiceFeedbackIn(StrictMixin, serializers.Serializer):
    """An image, and the predictions of the service for it."""

    image = serializers.FileField(help_text="Image of the request; at most 32 MiB.")
    answers = serializers.CharField(
        required=False, default="[]", max_length=1_000_000, help_text="`predictions` of the answer, as JSON."
    )
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=500)

    def validate_answers(self, text: str) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise serializers.ValidationError(_("Invalid JSON.")) from None


class ServiceAnnotateIn(StrictMixin, serializers.Serializer):
    """The dataset that is made of the pictures."""

    name = serializers.CharField(max_length=25, validators=[TITLE])


class ServiceAnnotateOut(serializers.Serializer):
    """Where the pictures went."""

    dataset = serializers.IntegerField()


class FeedbackActions:
    """Additional routes of the view set of services."""

    @extend_schema(request={"multipart/form-data": ServiceFeedbackIn}, responses={201: ServiceSampleOut})
    @action(detail=True, methods=["post"], parser_classes=[CarefulMultiPartParser])
    def feedback(self: Any, request: ApiRequest, pk: str) -> Response:
        """Report a wrong prediction: the image is stored for annotation."""
        service = self.get_object()
        serializer = ServiceFeedbackIn(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        fields = serializer.validated_data
        picture = fields["image"].read(samples.MAX_BYTES + 1)
        sample = samples.store(
            holder=service, picture=picture, answers=fields["answers"], note=fields["note"], by=request.user
        )
        return Response(ServiceSampleOut(sample).data, status=201)

    @extend_schema(request=None, responses=ServiceSampleOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def samples(self: Any, request: ApiRequest, pk: str) -> Response:
        """Pictures that wait for annotation; for who may change the service."""
        return Response(ServiceSampleOut(samples.waiting(self.own()), many=True).data)

    @extend_schema(request=ServiceAnnotateIn, responses={202: ServiceAnnotateOut})
    @action(detail=True, methods=["post"])
    def annotate(self: Any, request: ApiRequest, pk: str) -> Response:
        """Make a dataset of the pictures, the answers on them as a first draft."""
        service = self.own()
        serializer = ServiceAnnotateIn(data=request.data, context=self.get_serializer_context())
        serializer.is_valid(raise_exception=True)
        made = samples.annotate(holder=service, name=serializer.validated_data["name"], by=request.user)
        return Response({"dataset": made.pk}, status=202)
