"""`/api/v1/alarms/`, `alarm-rules/`, `alarm-addresses/`: for those who manage the machines."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.access.permissions import Action
from aiplatform.lib.answers import OutMixin
from aiplatform.lib.api import NumberedViewSet, OldestFirstPagination, StrictMixin
from aiplatform.lib.errors import Invalid
from aiplatform.lib.idempotency import once
from workers.core.models import Alarm, AlarmAddress, AlarmRule, Severity
from workers.resources.monitoring import alarms
from workers.resources.monitoring.rules import RULES


class AlarmOut(OutMixin, serializers.ModelSerializer):
    """An alarm: raised at `raised_at` once it lasted, over at `ended_at`."""

    rule = serializers.CharField(source="rule.key")
    sentence = serializers.SerializerMethodField()

    class Meta:
        model = Alarm
        fields = [
            "id",
            "rule",
            "subject",
            "severity",
            "sentence",
            "value",
            "seen_at",
            "raised_at",
            "ended_at",
            "told_at",
        ]

    def get_sentence(self, alarm: Alarm) -> str:
        return alarms.words(alarm)


class SilenceIn(StrictMixin, serializers.Serializer):
    """Hours without notifications."""

    hours = serializers.FloatField()


class SilenceOut(serializers.Serializer):
    """End of the time without notifications."""

    until = serializers.DateTimeField()


class RuleOut(OutMixin, serializers.ModelSerializer):
    """A rule as it is set; without a unit its threshold means nothing."""

    label = serializers.SerializerMethodField()  # type: ignore[assignment]  # a field of that name, not DRF's attribute
    unit = serializers.SerializerMethodField()

    class Meta:
        model = AlarmRule
        fields = ["id", "key", "label", "enabled", "severity", "threshold", "unit", "for_s", "send"]

    def get_label(self, rule: AlarmRule) -> str:
        return str(RULES[rule.key].label) if rule.key in RULES else rule.key

    def get_unit(self, rule: AlarmRule) -> str:
        return RULES[rule.key].unit_of(rule.threshold) if rule.key in RULES else ""


class RuleIn(StrictMixin, serializers.Serializer):
    """What is left out stays."""

    enabled = serializers.BooleanField(required=False)
    severity = serializers.ChoiceField(choices=Severity.choices, required=False)
    threshold = serializers.FloatField(required=False)
    for_s = serializers.IntegerField(min_value=0, max_value=7 * 86400, required=False)
    send = serializers.BooleanField(required=False)


class AddressOut(OutMixin, serializers.ModelSerializer):
    """Address that alarms are sent to."""

    class Meta:
        model = AlarmAddress
        fields = ["id", "channel", "target", "least", "enabled", "made_at"]


class AddressMade(AddressOut):
    """A new address; `secret` signs what a webhook is sent, and is empty for mail."""

    class Meta(AddressOut.Meta):
        fields = [*AddressOut.Meta.fields, "secret"]
        read_only_fields = ["secret"]


class AddressIn(StrictMixin, serializers.Serializer):
    """A mail address or a webhook."""

    channel = serializers.ChoiceField(choices=AlarmAddress.Channel.choices)
    target = serializers.CharField(max_length=500)
    least = serializers.ChoiceField(choices=Severity.choices, default=Severity.WARNING)
    enabled = serializers.BooleanField(default=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["channel"] == AlarmAddress.Channel.MAIL:
            serializers.EmailField().run_validation(attrs["target"])
        return attrs


class AlarmViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Alarms, newest first. Filter: `state` (firing, pending, ended)."""

    needs = {"list": Action.CLUSTER_MANAGE, "retrieve": Action.CLUSTER_MANAGE, "silence": Action.CLUSTER_MANAGE}
    asks = {"list": ("state",)}
    serializer_class = AlarmOut
    queryset = Alarm.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        rows = Alarm.objects.visible_to(user).select_related("rule")
        if self.action != "list":
            return rows
        match self.request.query_params.get("state", ""):
            case "":
                return rows
            case "firing":
                return rows.filter(ended_at=None).exclude(raised_at=None)
            case "pending":
                return rows.filter(ended_at=None, raised_at=None)
            case "ended":
                return rows.exclude(ended_at=None)
            case other:
                raise Invalid(_("Unknown state %(name)s.") % {"name": other[:30]})

    @extend_schema(request=SilenceIn, responses={201: SilenceOut})
    @action(detail=True, methods=["post"])
    @once
    def silence(self, request: Request, pk: str) -> Response:
        """Silence this alarm for a while."""
        alarm: Alarm = self.get_object()
        requested = SilenceIn(data=request.data)
        requested.is_valid(raise_exception=True)
        user: Any = request.user
        row = alarms.silence(by=user, hours=requested.validated_data["hours"], rule=alarm.rule, subject=alarm.subject)
        return Response(SilenceOut(row).data, status=201)


class AlarmRuleViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """The built-in rules as they are set here."""

    needs = {
        "list": Action.CLUSTER_MANAGE,
        "retrieve": Action.CLUSTER_MANAGE,
        "partial_update": Action.CLUSTER_MANAGE,
    }
    serializer_class = RuleOut
    pagination_class = OldestFirstPagination
    queryset = AlarmRule.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return AlarmRule.objects.visible_to(user)

    @extend_schema(request=RuleIn, responses=RuleOut)
    def partial_update(self, request: Request, pk: str) -> Response:
        """Switch a rule on or off, or change when it is raised."""
        requested = RuleIn(data=request.data)
        requested.is_valid(raise_exception=True)
        user: Any = request.user
        return Response(RuleOut(alarms.set_rule(self.get_object(), by=user, **requested.validated_data)).data)


class AlarmAddressViewSet(ListModelMixin, RetrieveModelMixin, NumberedViewSet):
    """Addresses that alarms are sent to."""

    needs = {
        "list": Action.CLUSTER_MANAGE,
        "retrieve": Action.CLUSTER_MANAGE,
        "create": Action.CLUSTER_MANAGE,
        "destroy": Action.CLUSTER_MANAGE,
    }
    serializer_class = AddressOut
    pagination_class = OldestFirstPagination
    queryset = AlarmAddress.objects.none()

    def get_queryset(self) -> Any:
        user: Any = self.request.user
        return AlarmAddress.objects.visible_to(user)

    @extend_schema(request=AddressIn, responses={201: AddressMade})
    @once
    def create(self, request: Request) -> Response:
        """Add an address."""
        requested = AddressIn(data=request.data)
        requested.is_valid(raise_exception=True)
        user: Any = request.user
        return Response(AddressMade(alarms.save_address(None, by=user, **requested.validated_data)).data, status=201)

    def destroy(self, request: Request, pk: str) -> Response:
        """Remove an address: no more alarms are sent to it."""
        user: Any = request.user
        alarms.remove_address(self.get_object(), by=user)
        return Response(status=204)
