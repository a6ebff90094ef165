"""API of groups of devices."""

from __future__ import annotations

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import RetrieveModelMixin
from rest_framework.response import Response

from accounts.access.permissions import Action
from accounts.http import ApiRequest
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import StrictMixin, parse_request
from aiplatform.lib.titles import TITLE
from aiplatform.objects.viewsets import (
    CreateObject,
    DeleteObject,
    ObjectBase,
    ObjectViewSet,
    object_action,
)
from inference.delivery.edge import fleet, logs, sampling
from inference.delivery.edge.filters import EdgeGroupFilters
from inference.delivery.edge.models import EdgeDevice, EdgeGroup
from inference.registry.version_serializers import VersionField
from inference.serving.feedback import samples
from inference.serving.feedback.api import ServiceAnnotateIn, ServiceAnnotateOut, ServiceSampleOut

RULE = ("percent", "below", "days")


class EdgeGroupOut(OutMixin, serializers.ModelSerializer):
    """A group: what it should run, and how far that has come."""

    owner = serializers.CharField(source="owner.username", read_only=True)
    wanted = serializers.CharField(source="wanted.model_label", read_only=True, default="")
    wanted_sha256 = serializers.CharField(source="wanted.sha256", read_only=True, default="")
    before = serializers.CharField(source="before.model_label", read_only=True, default="")
    devices = serializers.IntegerField(source="devices.count", read_only=True)

    class Meta:
        model = EdgeGroup
        fields = [
            "id", "name", "owner", "wanted", "wanted_sha256", "before", "number", "share", "soak_minutes", "halted",
            "days_offline", "keep_percent", "keep_below", "keep_days", "devices", "released_at", "created_at",
        ]  # fmt: skip


class EdgeGroupIn(StrictMixin, serializers.Serializer):
    """A new group."""

    name = serializers.CharField(max_length=100, validators=[TITLE])
    days_offline = serializers.IntegerField(min_value=1, max_value=365, required=False, default=7)


class EdgeReleaseIn(StrictMixin, serializers.Serializer):
    """Which version a share of the devices gets, in percent."""

    version = VersionField(to_use=True)
    share = serializers.IntegerField(required=False, default=100, help_text=f"One of {fleet.SHARES}.")
    soak_minutes = serializers.IntegerField(
        required=False, default=0, min_value=0, max_value=fleet.MAX_SOAK,
        help_text="Time after which the next share follows automatically; 0: a user decides.",
    )  # fmt: skip


class EdgeSamplingIn(StrictMixin, serializers.Serializer):
    """Which pictures devices keep for annotation; what is left out stays."""

    keep_percent = serializers.IntegerField(
        required=False, min_value=0, max_value=100, help_text="Of all that they answer, by chance; 0: none."
    )
    keep_below = serializers.IntegerField(
        required=False, min_value=0, max_value=100, help_text="With an answer of a lower score, in percent; 0: none."
    )
    keep_days = serializers.IntegerField(
        required=False, min_value=1, max_value=sampling.MAX_DAYS, help_text="That they wait for annotation."
    )


class EdgeDeviceIn(StrictMixin, serializers.Serializer):
    """A new device."""

    name = serializers.CharField(max_length=100, validators=[TITLE])


class EdgeDeviceOut(OutMixin, serializers.ModelSerializer):
    """A device, what it runs and its last report."""

    enrolled = serializers.BooleanField(source="token_digest", read_only=True)

    class Meta:
        model = EdgeDevice
        fields = [
            "id", "group", "name", "enrolled", "seen_at", "package", "number", "outcome", "detail", "differs",
            "counters", "hardware", "samples", "created_at",
        ]  # fmt: skip


class EdgeLineOut(serializers.Serializer):
    """A line of a device, with the time by its own clock."""

    at = serializers.DateTimeField(allow_null=True)
    text = serializers.CharField()


class EdgeLogOut(serializers.Serializer):
    """The last lines of a device, the newest last."""

    lines = EdgeLineOut(many=True)
    left_out = serializers.IntegerField(help_text="Lines of today beyond what a device may send in a day.")


class EdgeGroupViewSet(CreateObject, DeleteObject, ObjectViewSet):
    """Groups of devices outside of the cluster. `?search=` finds."""

    view_permission, change_permission = Action.SERVICES_VIEW, Action.SERVICES_MANAGE
    needs = {"devices": Action.SERVICES_VIEW}
    serializer_class, create_serializer_class = EdgeGroupOut, EdgeGroupIn
    filters = EdgeGroupFilters
    forbids_change = True

    def create_object(self, **values: Any) -> EdgeGroup:
        return fleet.create(user=self.request.user, **values)

    def delete_object(self, group: EdgeGroup) -> None:
        fleet.delete(group=group, by=self.request.user)

    @object_action(EdgeReleaseIn)
    def release(self, group: EdgeGroup, **values: Any) -> EdgeGroup:
        """Release a version to a share of the devices; the same version with a larger share extends it."""
        return fleet.release(group=group, by=self.request.user, **values)

    @object_action()
    def rollback(self, group: EdgeGroup) -> EdgeGroup:
        """Return all devices to the version before."""
        return fleet.roll_back(group=group, by=self.request.user)

    @object_action(EdgeSamplingIn)
    def sampling(self, group: EdgeGroup, **values: Any) -> EdgeGroup:
        """Set which images its devices keep for annotation."""
        rule = {name: values.get(f"keep_{name}", getattr(group, f"keep_{name}")) for name in RULE}
        return sampling.set_rule(group=group, by=self.request.user, **rule)

    @extend_schema(request=EdgeDeviceIn, responses={201: OpenApiTypes.OBJECT})
    @action(detail=True, methods=["post"])
    def enrolment(self, request: ApiRequest, pk: str) -> Response:
        """Add a device; `code` in the answer is shown this once."""
        group = self.get_object()
        device, code = fleet.add_device(group=group, by=request.user, **parse_request(EdgeDeviceIn(data=request.data)))
        body = {**EdgeDeviceOut(device).data, "code": code}
        return Response(body, status=201, headers={"Cache-Control": "no-store"})

    @extend_schema(request=None, responses=ServiceSampleOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def samples(self, request: ApiRequest, pk: str) -> Response:
        """Pictures that wait for annotation; for who may change the group."""
        return Response(ServiceSampleOut(samples.waiting(self.get_object()), many=True).data)

    @extend_schema(request=ServiceAnnotateIn, responses={202: ServiceAnnotateOut})
    @action(detail=True, methods=["post"])
    def annotate(self, request: ApiRequest, pk: str) -> Response:
        """Make a dataset of the pictures, the answers on them as a first draft."""
        group = self.get_object()
        values = parse_request(ServiceAnnotateIn(data=request.data, context=self.get_serializer_context()))
        dataset = samples.annotate(holder=group, name=values["name"], by=request.user)
        return Response({"dataset": dataset.pk}, status=202)

    @extend_schema(responses=EdgeDeviceOut(many=True))
    @action(detail=True, methods=["get"], pagination_class=None)
    def devices(self, request: ApiRequest, pk: str) -> Response:
        """All devices of the group."""
        return Response(EdgeDeviceOut(self.get_object().devices.all(), many=True).data)


class EdgeDeviceViewSet(DeleteObject, RetrieveModelMixin, ObjectBase):
    """A device outside of the cluster."""

    view_permission, change_permission = Action.SERVICES_VIEW, Action.SERVICES_MANAGE
    needs = {"log": Action.SERVICES_VIEW}
    serializer_class = EdgeDeviceOut

    def delete_object(self, device: EdgeDevice) -> None:
        fleet.remove(device=device, by=self.request.user)

    @object_action()
    def revoke(self, device: EdgeDevice) -> None:
        """Revoke its token; it keeps the model that it has."""
        fleet.revoke(device=device, by=self.request.user)

    @extend_schema(responses=EdgeLogOut)
    @action(detail=True, methods=["get"])
    def log(self, request: ApiRequest, pk: str) -> Response:
        """Its last lines."""
        lines, left_out = logs.for_device(self.get_object())
        return Response(EdgeLogOut({"lines": lines, "left_out": left_out}).data)
